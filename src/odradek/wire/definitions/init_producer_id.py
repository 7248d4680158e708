"""Layout of init_producer_id by version, in the notation of wire/schema.py."""

REQUEST = """
InitProducerIdRequest 0-6 flexible 2+
  transactional_id: string null
  transaction_timeout: int32
  producer_id: int64 3+ = -1
  producer_epoch: int16 3+ = -1
  enable2_pc: bool 6+
  keep_prepared_txn: bool 6+
"""

RESPONSE = """
InitProducerIdResponse 0-6 flexible 2+
  throttle_time: int32
  error_code: int16
  producer_id: int64 = -1
  producer_epoch: int16
  ongoing_txn_producer_id: int64 6+ = -1
  ongoing_txn_producer_epoch: int16 6+ = -1
"""
