"""Layout of alter_share_group_offsets by version, in the notation of wire/schema.py."""

REQUEST = """
AlterShareGroupOffsetsRequest 0-0 flexible 0+
  group_id: string
  topics: []AlterShareGroupOffsetsRequestTopic
    topic_name: string
    partitions: []AlterShareGroupOffsetsRequestPartition
      partition_index: int32
      start_offset: int64
"""

RESPONSE = """
AlterShareGroupOffsetsResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null = null
  responses: []AlterShareGroupOffsetsResponseTopic
    topic_name: string
    topic_id: uuid
    partitions: []AlterShareGroupOffsetsResponsePartition
      partition_index: int32
      error_code: int16
      error_message: string null = null
"""
