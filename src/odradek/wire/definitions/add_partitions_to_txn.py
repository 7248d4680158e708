"""Layout of add_partitions_to_txn by version, in the notation of wire/schema.py."""

REQUEST = """
AddPartitionsToTxnRequest 0-5 flexible 3+
  v3_and_below_transactional_id: string 0-3
  v3_and_below_producer_id: int64 0-3
  v3_and_below_producer_epoch: int16 0-3
  v3_and_below_topics: []AddPartitionsToTxnTopic 0-3
    name: string 0+
    partitions: []int32 0+
  transactions: []AddPartitionsToTxnTransaction 4+
    transactional_id: string
    producer_id: int64
    producer_epoch: int16
    verify_only: bool
    topics: []AddPartitionsToTxnTopic
"""

RESPONSE = """
AddPartitionsToTxnResponse 0-5 flexible 3+
  throttle_time: int32
  results_by_topic_v3_and_below: []AddPartitionsToTxnTopicResult 0-3
    name: string 0+
    results_by_partition: []AddPartitionsToTxnPartitionResult 0+
      partition_index: int32
      partition_error_code: int16
  error_code: int16 4+
  results_by_transaction: []AddPartitionsToTxnResult 4+
    transactional_id: string
    topic_results: []AddPartitionsToTxnTopicResult
"""
