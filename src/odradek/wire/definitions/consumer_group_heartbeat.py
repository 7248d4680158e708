"""Layout of consumer_group_heartbeat by version, in the notation of wire/schema.py."""

REQUEST = """
ConsumerGroupHeartbeatRequest 0-1 flexible 0+
  group_id: string
  member_id: string
  member_epoch: int32
  instance_id: string null = null
  rack_id: string null = null
  rebalance_timeout: int32 = -1
  subscribed_topic_names: []string null = null
  subscribed_topic_regex: string 1+ null = null
  server_assignor: string null = null
  topic_partitions: []TopicPartitions null
    topic_id: uuid
    partitions: []int32
"""

RESPONSE = """
ConsumerGroupHeartbeatResponse 0-1 flexible 0+
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
