"""Layout of read_share_group_state_summary by version, in the notation of wire/schema.py."""

REQUEST = """
ReadShareGroupStateSummaryRequest 0-1 flexible 0+
  group_id: string
  topics: []ReadStateSummaryData
    topic_id: uuid
    partitions: []PartitionData
      partition: int32
      leader_epoch: int32
"""

RESPONSE = """
ReadShareGroupStateSummaryResponse 0-1 flexible 0+
  results: []ReadStateSummaryResult
    topic_id: uuid
    partitions: []PartitionResult
      partition: int32
      error_code: int16
      error_message: string null = null
      state_epoch: int32
      leader_epoch: int32
      start_offset: int64
      delivery_complete_count: int32 1+ = -1
"""
