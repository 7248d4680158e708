"""Layout of describe_user_scram_credentials by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeUserScramCredentialsRequest 0-0 flexible 0+
  users: []UserName null
    name: string
"""

RESPONSE = """
DescribeUserScramCredentialsResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null
  results: []DescribeUserScramCredentialsResult
    user: string
    error_code: int16
    error_message: string null
    credential_infos: []CredentialInfo
      mechanism: int8
      iterations: int32
"""
