"""Layout of offset_delete by version, in the notation of wire/schema.py."""

REQUEST = """
OffsetDeleteRequest 0-0
  group_id: string
  topics: []OffsetDeleteRequestTopic
    name: string
    partitions: []OffsetDeleteRequestPartition
      partition_index: int32
"""

RESPONSE = """
OffsetDeleteResponse 0-0
  error_code: int16
  throttle_time: int32
  topics: []OffsetDeleteResponseTopic
    name: string
    partitions: []OffsetDeleteResponsePartition
      partition_index: int32
      error_code: int16
"""
