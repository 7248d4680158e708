"""Layout of update_features by version, in the notation of wire/schema.py."""

REQUEST = """
UpdateFeaturesRequest 0-2 flexible 0+
  timeout: int32 = 60000
  feature_updates: []FeatureUpdateKey
    feature: string
    max_version_level: int16
    allow_downgrade: bool 0-0
    upgrade_type: int8 1+ = 1
  validate_only: bool 1+
"""

RESPONSE = """
UpdateFeaturesResponse 0-2 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null
  results: []UpdatableFeatureResult 0-1
    feature: string
    error_code: int16
    error_message: string null
"""
