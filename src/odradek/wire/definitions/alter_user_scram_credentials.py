"""Layout of alter_user_scram_credentials by version, in the notation of wire/schema.py."""

REQUEST = """
AlterUserScramCredentialsRequest 0-0 flexible 0+
  deletions: []ScramCredentialDeletion
    name: string
    mechanism: int8
  upsertions: []ScramCredentialUpsertion
    name: string
    mechanism: int8
    iterations: int32
    salt: bytes
    salted_password: bytes
"""

RESPONSE = """
AlterUserScramCredentialsResponse 0-0 flexible 0+
  throttle_time: int32
  results: []AlterUserScramCredentialsResult
    user: string
    error_code: int16
    error_message: string null
"""
