"""Layout of alter_client_quotas by version, in the notation of wire/schema.py."""

REQUEST = """
AlterClientQuotasRequest 0-1 flexible 1+
  entries: []EntryData
    entity: []EntityData
      entity_type: string
      entity_name: string null
    ops: []OpData
      key: string
      value: float64
      remove: bool
  validate_only: bool
"""

RESPONSE = """
AlterClientQuotasResponse 0-1 flexible 1+
  throttle_time: int32
  entries: []EntryData
    error_code: int16
    error_message: string null
    entity: []EntityData
      entity_type: string
      entity_name: string null
"""
