"""Layout of expire_delegation_token by version, in the notation of wire/schema.py."""

REQUEST = """
ExpireDelegationTokenRequest 1-2 flexible 2+
  hmac: bytes
  expiry_time_period: int64
"""

RESPONSE = """
ExpireDelegationTokenResponse 1-2 flexible 2+
  error_code: int16
  expiry_timestamp: int64
  throttle_time: int32
"""
