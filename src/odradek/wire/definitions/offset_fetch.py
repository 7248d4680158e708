"""Layout of offset_fetch by version, in the notation of wire/schema.py."""

REQUEST = """
OffsetFetchRequest 1-10 flexible 6+
  group_id: string 1-7
  topics: []OffsetFetchRequestTopic 1-7 null 2-7
    name: string
    partition_indexes: []int32
  groups: []OffsetFetchRequestGroup 8+
    group_id: string
    member_id: string 9+ null = null
    member_epoch: int32 9+ = -1
    topics: []OffsetFetchRequestTopics null
      name: string 8-9
      topic_id: uuid 10+
      partition_indexes: []int32
  require_stable: bool 7+
"""

RESPONSE = """
OffsetFetchResponse 1-10 flexible 6+
  throttle_time: int32 3+
  topics: []OffsetFetchResponseTopic 1-7
    name: string
    partitions: []OffsetFetchResponsePartition
      partition_index: int32
      committed_offset: int64
      committed_leader_epoch: int32 5-7 = -1
      metadata: string null
      error_code: int16
  error_code: int16 2-7
  groups: []OffsetFetchResponseGroup 8+
    group_id: string
    topics: []OffsetFetchResponseTopics
      name: string 8-9
      topic_id: uuid 10+
      partitions: []OffsetFetchResponsePartitions
        partition_index: int32
        committed_offset: int64
        committed_leader_epoch: int32 = -1
        metadata: string null
        error_code: int16
    error_code: int16
"""
