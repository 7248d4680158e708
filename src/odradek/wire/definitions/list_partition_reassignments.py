"""Layout of list_partition_reassignments by version, in the notation of wire/schema.py."""

REQUEST = """
ListPartitionReassignmentsRequest 0-0 flexible 0+
  timeout: int32 = 60000
  topics: []ListPartitionReassignmentsTopics null
    name: string
    partition_indexes: []int32
"""

RESPONSE = """
ListPartitionReassignmentsResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null
  topics: []OngoingTopicReassignment
    name: string
    partitions: []OngoingPartitionReassignment
      partition_index: int32
      replicas: []int32
      adding_replicas: []int32
      removing_replicas: []int32
"""
