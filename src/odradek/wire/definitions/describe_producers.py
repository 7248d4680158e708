"""Layout of describe_producers by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeProducersRequest 0-0 flexible 0+
  topics: []TopicRequest
    name: string
    partition_indexes: []int32
"""

RESPONSE = """
DescribeProducersResponse 0-0 flexible 0+
  throttle_time: int32
  topics: []TopicResponse
    name: string
    partitions: []PartitionResponse
      partition_index: int32
      error_code: int16
      error_message: string null = null
      active_producers: []ProducerState
        producer_id: int64
        producer_epoch: int32
        last_sequence: int32 = -1
        last_timestamp: int64 = -1
        coordinator_epoch: int32
        current_txn_start_offset: int64 = -1
"""
