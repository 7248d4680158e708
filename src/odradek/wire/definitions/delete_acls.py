"""Layout of delete_acls by version, in the notation of wire/schema.py."""

REQUEST = """
DeleteAclsRequest 1-3 flexible 2+
  filters: []DeleteAclsFilter
    resource_type_filter: int8
    resource_name_filter: string null
    pattern_type_filter: int8 = 3
    principal_filter: string null
    host_filter: string null
    operation: int8
    permission_type: int8
"""

RESPONSE = """
DeleteAclsResponse 1-3 flexible 2+
  throttle_time: int32
  filter_results: []DeleteAclsFilterResult
    error_code: int16
    error_message: string null
    matching_acls: []DeleteAclsMatchingAcl
      error_code: int16
      error_message: string null
      resource_type: int8
      resource_name: string
      pattern_type: int8 = 3
      principal: string
      host: string
      operation: int8
      permission_type: int8
"""
