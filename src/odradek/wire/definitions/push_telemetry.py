"""Layout of push_telemetry by version, in the notation of wire/schema.py."""

REQUEST = """
PushTelemetryRequest 0-0 flexible 0+
  client_instance_id: uuid
  subscription_id: int32
  terminating: bool
  compression_type: int8
  metrics: bytes
"""

RESPONSE = """
PushTelemetryResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
"""
