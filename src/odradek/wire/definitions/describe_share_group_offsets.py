"""Layout of describe_share_group_offsets by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeShareGroupOffsetsRequest 0-1 flexible 0+
  groups: []DescribeShareGroupOffsetsRequestGroup
    group_id: string
    topics: []DescribeShareGroupOffsetsRequestTopic null
      topic_name: string
      partitions: []int32
"""

RESPONSE = """
DescribeShareGroupOffsetsResponse 0-1 flexible 0+
  throttle_time: int32
  groups: []DescribeShareGroupOffsetsResponseGroup
    group_id: string
    topics: []DescribeShareGroupOffsetsResponseTopic
      topic_name: string
      topic_id: uuid
      partitions: []DescribeShareGroupOffsetsResponsePartition
        partition_index: int32
        start_offset: int64
        leader_epoch: int32
        lag: int64 1+ = -1
        error_code: int16
        error_message: string null = null
    error_code: int16
    error_message: string null = null
"""
