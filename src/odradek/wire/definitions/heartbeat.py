"""Layout of heartbeat by version, in the notation of wire/schema.py."""

REQUEST = """
HeartbeatRequest 0-4 flexible 4+
  group_id: string
  generation_id: int32
  member_id: string
  group_instance_id: string 3+ null = null
"""

RESPONSE = """
HeartbeatResponse 0-4 flexible 4+
  throttle_time: int32 1+
  error_code: int16
"""
