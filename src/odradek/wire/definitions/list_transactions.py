"""Layout of list_transactions by version, in the notation of wire/schema.py."""

REQUEST = """
ListTransactionsRequest 0-2 flexible 0+
  state_filters: []string
  producer_id_filters: []int64
  duration_filter: int64 1+ = -1
  transactional_id_pattern: string 2+ null = null
"""

RESPONSE = """
ListTransactionsResponse 0-2 flexible 0+
  throttle_time: int32
  error_code: int16
  unknown_state_filters: []string
  transaction_states: []TransactionState
    transactional_id: string
    producer_id: int64
    transaction_state: string
"""
