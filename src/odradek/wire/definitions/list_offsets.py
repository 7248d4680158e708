"""Layout of list_offsets by version, in the notation of wire/schema.py."""

REQUEST = """
ListOffsetsRequest 1-11 flexible 6+
  replica_id: int32
  isolation_level: int8 2+
  topics: []ListOffsetsTopic
    name: string
    partitions: []ListOffsetsPartition
      partition_index: int32
      current_leader_epoch: int32 4+ = -1
      timestamp: int64
  timeout: int32 10+
"""

RESPONSE = """
ListOffsetsResponse 1-11 flexible 6+
  throttle_time: int32 2+
  topics: []ListOffsetsTopicResponse
    name: string
    partitions: []ListOffsetsPartitionResponse
      partition_index: int32
      error_code: int16
      timestamp: int64 = -1
      offset: int64 = -1
      leader_epoch: int32 4+ = -1
"""
