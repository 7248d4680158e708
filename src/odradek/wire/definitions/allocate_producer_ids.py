"""Layout of allocate_producer_ids by version, in the notation of wire/schema.py."""

REQUEST = """
AllocateProducerIdsRequest 0-0 flexible 0+
  broker_id: int32
  broker_epoch: int64 = -1
"""

RESPONSE = """
AllocateProducerIdsResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  producer_id_start: int64
  producer_id_len: int32
"""
