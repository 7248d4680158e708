"""Layout of alter_partition_reassignments by version, in the notation of wire/schema.py."""

REQUEST = """
AlterPartitionReassignmentsRequest 0-1 flexible 0+
  timeout: int32 = 60000
  allow_replication_factor_change: bool 1+ = true
  topics: []ReassignableTopic
    name: string
    partitions: []ReassignablePartition
      partition_index: int32
      replicas: []int32 null = null
"""

RESPONSE = """
AlterPartitionReassignmentsResponse 0-1 flexible 0+
  throttle_time: int32
  allow_replication_factor_change: bool 1+ = true
  error_code: int16
  error_message: string null
  responses: []ReassignableTopicResponse
    name: string
    partitions: []ReassignablePartitionResponse
      partition_index: int32
      error_code: int16
      error_message: string null
"""
