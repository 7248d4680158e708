"""Layout of share_group_heartbeat by version, in the notation of wire/schema.py."""

REQUEST = """
ShareGroupHeartbeatRequest 1-1 flexible 1+
  group_id: string
  member_id: string
  member_epoch: int32
  rack_id: string null = null
  subscribed_topic_names: []string null = null
"""

RESPONSE = """
ShareGroupHeartbeatResponse 1-1 flexible 1+
  throttle_time: int32
  error_code: int16
  error_message: string null = null
  member_id: string null = null
  member_epoch: int32
  heartbeat_interval: int32
  assignment: Assignment null = null
    topic_partitions: []TopicPartitions
      topic_id: uuid
      partitions: []int32
"""
