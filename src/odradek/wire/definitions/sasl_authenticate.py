"""Layout of sasl_authenticate by version, in the notation of wire/schema.py."""

REQUEST = """
SaslAuthenticateRequest 0-2 flexible 2+
  auth_bytes: bytes
"""

RESPONSE = """
SaslAuthenticateResponse 0-2 flexible 2+
  error_code: int16
  error_message: string null
  auth_bytes: bytes
  session_lifetime: int64 1+
"""
