"""Layout of describe_topic_partitions by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeTopicPartitionsRequest 0-0 flexible 0+
  topics: []TopicRequest
    name: string
  response_partition_limit: int32 = 2000
  cursor: Cursor null = null
    topic_name: string
    partition_index: int32
"""

RESPONSE = """
DescribeTopicPartitionsResponse 0-0 flexible 0+
  throttle_time: int32
  topics: []DescribeTopicPartitionsResponseTopic
    error_code: int16
    name: string null
    topic_id: uuid
    is_internal: bool
    partitions: []DescribeTopicPartitionsResponsePartition
      error_code: int16
      partition_index: int32
      leader_id: int32
      leader_epoch: int32 = -1
      replica_nodes: []int32
      isr_nodes: []int32
      eligible_leader_replicas: []int32 null = null
      last_known_elr: []int32 null = null
      offline_replicas: []int32
    topic_authorized_operations: int32 = -2147483648
  next_cursor: Cursor null = null
    topic_name: string
    partition_index: int32
"""
