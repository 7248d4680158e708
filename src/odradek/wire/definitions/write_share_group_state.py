"""Layout of write_share_group_state by version, in the notation of wire/schema.py."""

REQUEST = """
WriteShareGroupStateRequest 0-1 flexible 0+
  group_id: string
  topics: []WriteStateData
    topic_id: uuid
    partitions: []PartitionData
      partition: int32
      state_epoch: int32
      leader_epoch: int32
      start_offset: int64
      delivery_complete_count: int32 1+ = -1
      state_batches: []StateBatch
        first_offset: int64
        last_offset: int64
        delivery_state: int8
        delivery_count: int16
"""

RESPONSE = """
WriteShareGroupStateResponse 0-1 flexible 0+
  results: []WriteStateResult
    topic_id: uuid
    partitions: []PartitionResult
      partition: int32
      error_code: int16
      error_message: string null = null
"""
