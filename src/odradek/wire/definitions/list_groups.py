"""Layout of list_groups by version, in the notation of wire/schema.py."""

REQUEST = """
ListGroupsRequest 0-5 flexible 3+
  states_filter: []string 4+
  types_filter: []string 5+
"""

RESPONSE = """
ListGroupsResponse 0-5 flexible 3+
  throttle_time: int32 1+
  error_code: int16
  groups: []ListedGroup
    group_id: string
    protocol_type: string
    group_state: string 4+
    group_type: string 5+
"""
