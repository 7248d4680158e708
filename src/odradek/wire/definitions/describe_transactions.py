"""Layout of describe_transactions by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeTransactionsRequest 0-0 flexible 0+
  transactional_ids: []string
"""

RESPONSE = """
DescribeTransactionsResponse 0-0 flexible 0+
  throttle_time: int32
  transaction_states: []TransactionState
    error_code: int16
    transactional_id: string
    transaction_state: string
    transaction_timeout: int32
    transaction_start_time: int64
    producer_id: int64
    producer_epoch: int16
    topics: []TopicData
      topic: string
      partitions: []int32
"""
