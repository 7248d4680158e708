"""Layout of offset_for_leader_epoch by version, in the notation of wire/schema.py."""

REQUEST = """
OffsetForLeaderEpochRequest 2-4 flexible 4+
  replica_id: int32 3+ = -2
  topics: []OffsetForLeaderTopic
    topic: string
    partitions: []OffsetForLeaderPartition
      partition: int32
      current_leader_epoch: int32 = -1
      leader_epoch: int32
"""

RESPONSE = """
OffsetForLeaderEpochResponse 2-4 flexible 4+
  throttle_time: int32
  topics: []OffsetForLeaderTopicResult
    topic: string
    partitions: []EpochEndOffset
      error_code: int16
      partition: int32
      leader_epoch: int32 = -1
      end_offset: int64 = -1
"""
