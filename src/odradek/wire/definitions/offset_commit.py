"""Layout of offset_commit by version, in the notation of wire/schema.py."""

REQUEST = """
OffsetCommitRequest 2-10 flexible 8+
  group_id: string
  generation_id_or_member_epoch: int32 = -1
  member_id: string
  retention_time: int64 2-4 = -1
  group_instance_id: string 7+ null = null
  topics: []OffsetCommitRequestTopic
    name: string 2-9
    topic_id: uuid 10+
    partitions: []OffsetCommitRequestPartition
      partition_index: int32
      committed_offset: int64
      committed_leader_epoch: int32 6+ = -1
      committed_metadata: string null
"""

RESPONSE = """
OffsetCommitResponse 2-10 flexible 8+
  throttle_time: int32 3+
  topics: []OffsetCommitResponseTopic
    name: string 2-9
    topic_id: uuid 10+
    partitions: []OffsetCommitResponsePartition
      partition_index: int32
      error_code: int16
"""
