"""Layout of create_partitions by version, in the notation of wire/schema.py."""

REQUEST = """
CreatePartitionsRequest 0-3 flexible 2+
  topics: []CreatePartitionsTopic
    name: string
    count: int32
    assignments: []CreatePartitionsAssignment null
      broker_ids: []int32
  timeout: int32
  validate_only: bool
"""

RESPONSE = """
CreatePartitionsResponse 0-3 flexible 2+
  throttle_time: int32
  results: []CreatePartitionsTopicResult
    name: string
    error_code: int16
    error_message: string null = null
"""
