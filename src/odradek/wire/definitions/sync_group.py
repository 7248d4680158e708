"""Layout of sync_group by version, in the notation of wire/schema.py."""

REQUEST = """
SyncGroupRequest 0-5 flexible 4+
  group_id: string
  generation_id: int32
  member_id: string
  group_instance_id: string 3+ null = null
  protocol_type: string 5+ null = null
  protocol_name: string 5+ null = null
  assignments: []SyncGroupRequestAssignment
    member_id: string
    assignment: bytes
"""

RESPONSE = """
SyncGroupResponse 0-5 flexible 4+
  throttle_time: int32 1+
  error_code: int16
  protocol_type: string 5+ null = null
  protocol_name: string 5+ null = null
  assignment: bytes
"""
