"""Layout of sasl_handshake by version, in the notation of wire/schema.py."""

REQUEST = """
SaslHandshakeRequest 0-1
  mechanism: string
"""

RESPONSE = """
SaslHandshakeResponse 0-1
  error_code: int16
  mechanisms: []string
"""
