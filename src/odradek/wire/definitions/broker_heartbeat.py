"""Layout of broker_heartbeat by version, in the notation of wire/schema.py."""

REQUEST = """
BrokerHeartbeatRequest 0-2 flexible 0+
  broker_id: int32
  broker_epoch: int64 = -1
  current_metadata_offset: int64
  want_fence: bool
  want_shut_down: bool
  offline_log_dirs: []uuid 1+ tag 0
  cordoned_log_dirs: []uuid 2+ null tag 1 = null
"""

RESPONSE = """
BrokerHeartbeatResponse 0-2 flexible 0+
  throttle_time: int32
  error_code: int16
  is_caught_up: bool
  is_fenced: bool = true
  should_shut_down: bool
"""
