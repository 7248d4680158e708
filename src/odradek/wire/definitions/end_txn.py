"""Layout of end_txn by version, in the notation of wire/schema.py."""

REQUEST = """
EndTxnRequest 0-5 flexible 3+
  transactional_id: string
  producer_id: int64
  producer_epoch: int16
  committed: bool
"""

RESPONSE = """
EndTxnResponse 0-5 flexible 3+
  throttle_time: int32
  error_code: int16
  producer_id: int64 5+ = -1
  producer_epoch: int16 5+ = -1
"""
