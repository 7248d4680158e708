"""Layout of delete_records by version, in the notation of wire/schema.py."""

REQUEST = """
DeleteRecordsRequest 0-2 flexible 2+
  topics: []DeleteRecordsTopic
    name: string
    partitions: []DeleteRecordsPartition
      partition_index: int32
      offset: int64
  timeout: int32
"""

RESPONSE = """
DeleteRecordsResponse 0-2 flexible 2+
  throttle_time: int32
  topics: []DeleteRecordsTopicResult
    name: string
    partitions: []DeleteRecordsPartitionResult
      partition_index: int32
      low_watermark: int64
      error_code: int16
"""
