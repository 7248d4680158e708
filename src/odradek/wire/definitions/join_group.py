"""Layout of join_group by version, in the notation of wire/schema.py."""

REQUEST = """
JoinGroupRequest 0-9 flexible 6+
  group_id: string
  session_timeout: int32
  rebalance_timeout: int32 1+ = -1
  member_id: string
  group_instance_id: string 5+ null = null
  protocol_type: string
  protocols: []JoinGroupRequestProtocol
    name: string
    metadata: bytes
  reason: string 8+ null = null
"""

RESPONSE = """
JoinGroupResponse 0-9 flexible 6+
  throttle_time: int32 2+
  error_code: int16
  generation_id: int32 = -1
  protocol_type: string 7+ null = null
  protocol_name: string null 7+
  leader: string
  skip_assignment: bool 9+
  member_id: string
  members: []JoinGroupResponseMember
    member_id: string
    group_instance_id: string 5+ null = null
    metadata: bytes
"""
