"""Layout of unregister_broker by version, in the notation of wire/schema.py."""

REQUEST = """
UnregisterBrokerRequest 0-0 flexible 0+
  broker_id: int32
"""

RESPONSE = """
UnregisterBrokerResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null
"""
