"""Layout of renew_delegation_token by version, in the notation of wire/schema.py."""

REQUEST = """
RenewDelegationTokenRequest 1-2 flexible 2+
  hmac: bytes
  renew_period: int64
"""

RESPONSE = """
RenewDelegationTokenResponse 1-2 flexible 2+
  error_code: int16
  expiry_timestamp: int64
  throttle_time: int32
"""
