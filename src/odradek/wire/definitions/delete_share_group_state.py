"""Layout of delete_share_group_state by version, in the notation of wire/schema.py."""

REQUEST = """
DeleteShareGroupStateRequest 0-0 flexible 0+
  group_id: string
  topics: []DeleteStateData
    topic_id: uuid
    partitions: []PartitionData
      partition: int32
"""

RESPONSE = """
DeleteShareGroupStateResponse 0-0 flexible 0+
  results: []DeleteStateResult
    topic_id: uuid
    partitions: []PartitionResult
      partition: int32
      error_code: int16
      error_message: string null = null
"""
