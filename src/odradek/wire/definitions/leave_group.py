"""Layout of leave_group by version, in the notation of wire/schema.py."""

REQUEST = """
LeaveGroupRequest 0-5 flexible 4+
  group_id: string
  member_id: string 0-2
  members: []MemberIdentity 3+
    member_id: string
    group_instance_id: string null = null
    reason: string 5+ null = null
"""

RESPONSE = """
LeaveGroupResponse 0-5 flexible 4+
  throttle_time: int32 1+
  error_code: int16
  members: []MemberResponse 3+
    member_id: string
    group_instance_id: string null
    error_code: int16
"""
