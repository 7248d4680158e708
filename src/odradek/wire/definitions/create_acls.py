"""Layout of create_acls by version, in the notation of wire/schema.py."""

REQUEST = """
CreateAclsRequest 1-3 flexible 2+
  creations: []AclCreation
    resource_type: int8
    resource_name: string
    resource_pattern_type: int8 = 3
    principal: string
    host: string
    operation: int8
    permission_type: int8
"""

RESPONSE = """
CreateAclsResponse 1-3 flexible 2+
  throttle_time: int32
  results: []AclCreationResult
    error_code: int16
    error_message: string null
"""
