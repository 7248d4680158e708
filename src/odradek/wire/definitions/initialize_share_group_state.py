"""Layout of initialize_share_group_state by version, in the notation of wire/schema.py."""

REQUEST = """
InitializeShareGroupStateRequest 0-0 flexible 0+
  group_id: string
  topics: []InitializeStateData
    topic_id: uuid
    partitions: []PartitionData
      partition: int32
      state_epoch: int32
      start_offset: int64
"""

RESPONSE = """
InitializeShareGroupStateResponse 0-0 flexible 0+
  results: []InitializeStateResult
    topic_id: uuid
    partitions: []PartitionResult
      partition: int32
      error_code: int16
      error_message: string null = null
"""
