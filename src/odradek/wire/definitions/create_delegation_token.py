"""Layout of create_delegation_token by version, in the notation of wire/schema.py."""

REQUEST = """
CreateDelegationTokenRequest 1-3 flexible 2+
  owner_principal_type: string 3+ null
  owner_principal_name: string 3+ null
  renewers: []CreatableRenewers
    principal_type: string
    principal_name: string
  max_lifetime: int64
"""

RESPONSE = """
CreateDelegationTokenResponse 1-3 flexible 2+
  error_code: int16
  principal_type: string
  principal_name: string
  token_requester_principal_type: string 3+
  token_requester_principal_name: string 3+
  issue_timestamp: int64
  expiry_timestamp: int64
  max_timestamp: int64
  token_id: string
  hmac: bytes
  throttle_time: int32
"""
