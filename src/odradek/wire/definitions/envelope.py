"""Layout of envelope by version, in the notation of wire/schema.py."""

REQUEST = """
EnvelopeRequest 0-0 flexible 0+
  request_data: bytes
  request_principal: bytes null
  client_host_address: bytes
"""

RESPONSE = """
EnvelopeResponse 0-0 flexible 0+
  response_data: bytes null = null
  error_code: int16
"""
