"""Layout of controller_registration by version, in the notation of wire/schema.py."""

REQUEST = """
ControllerRegistrationRequest 0-0 flexible 0+
  controller_id: int32
  incarnation_id: uuid
  zk_migration_ready: bool
  listeners: []Listener
    name: string
    host: string
    port: uint16
    security_protocol: int16
  features: []Feature
    name: string
    min_supported_version: int16
    max_supported_version: int16
"""

RESPONSE = """
ControllerRegistrationResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null
"""
