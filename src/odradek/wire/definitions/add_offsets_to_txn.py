"""Layout of add_offsets_to_txn by version, in the notation of wire/schema.py."""

REQUEST = """
AddOffsetsToTxnRequest 0-4 flexible 3+
  transactional_id: string
  producer_id: int64
  producer_epoch: int16
  group_id: string
"""

RESPONSE = """
AddOffsetsToTxnResponse 0-4 flexible 3+
  throttle_time: int32
  error_code: int16
"""
