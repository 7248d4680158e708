"""Layout of elect_leaders by version, in the notation of wire/schema.py."""

REQUEST = """
ElectLeadersRequest 0-2 flexible 2+
  election_type: int8 1+
  topic_partitions: []TopicPartitions null
    topic: string
    partitions: []int32
  timeout: int32 = 60000
"""

RESPONSE = """
ElectLeadersResponse 0-2 flexible 2+
  throttle_time: int32
  error_code: int16 1+
  replica_election_results: []ReplicaElectionResult
    topic: string
    partition_result: []PartitionResult
      partition_id: int32
      error_code: int16
      error_message: string null
"""
