"""Layout of get_telemetry_subscriptions by version, in the notation of wire/schema.py."""

REQUEST = """
GetTelemetrySubscriptionsRequest 0-0 flexible 0+
  client_instance_id: uuid
"""

RESPONSE = """
GetTelemetrySubscriptionsResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  client_instance_id: uuid
  subscription_id: int32
  accepted_compression_types: []int8
  push_interval: int32
  telemetry_max_bytes: int32
  delta_temporality: bool
  requested_metrics: []string
"""
