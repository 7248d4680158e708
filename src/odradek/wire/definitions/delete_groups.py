"""Layout of delete_groups by version, in the notation of wire/schema.py."""

REQUEST = """
DeleteGroupsRequest 0-2 flexible 2+
  groups_names: []string
"""

RESPONSE = """
DeleteGroupsResponse 0-2 flexible 2+
  throttle_time: int32
  results: []DeletableGroupResult
    group_id: string
    error_code: int16
"""
