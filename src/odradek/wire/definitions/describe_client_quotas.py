"""Layout of describe_client_quotas by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeClientQuotasRequest 0-1 flexible 1+
  components: []ComponentData
    entity_type: string
    match_type: int8
    match: string null
  strict: bool
"""

RESPONSE = """
DescribeClientQuotasResponse 0-1 flexible 1+
  throttle_time: int32
  error_code: int16
  error_message: string null
  entries: []EntryData null
    entity: []EntityData
      entity_type: string
      entity_name: string null
    values: []ValueData
      key: string
      value: float64
"""
