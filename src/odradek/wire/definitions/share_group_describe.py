"""Layout of share_group_describe by version, in the notation of wire/schema.py."""

REQUEST = """
ShareGroupDescribeRequest 1-1 flexible 1+
  group_ids: []string
  include_authorized_operations: bool
"""

RESPONSE = """
ShareGroupDescribeResponse 1-1 flexible 1+
  throttle_time: int32
  groups: []DescribedGroup
    error_code: int16
    error_message: string null = null
    group_id: string
    group_state: string
    group_epoch: int32
    assignment_epoch: int32
    assignor_name: string
    members: []Member
      member_id: string
      rack_id: string null = null
      member_epoch: int32
      client_id: string
      client_host: string
      subscribed_topic_names: []string
      assignment: Assignment
        topic_partitions: []TopicPartitions
          topic_id: uuid
          topic_name: string
          partitions: []int32
    authorized_operations: int32 = -2147483648
"""
