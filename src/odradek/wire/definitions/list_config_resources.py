"""Layout of list_config_resources by version, in the notation of wire/schema.py."""

REQUEST = """
ListConfigResourcesRequest 0-1 flexible 0+
  resource_types: []int8 1+
"""

RESPONSE = """
ListConfigResourcesResponse 0-1 flexible 0+
  throttle_time: int32
  error_code: int16
  config_resources: []ConfigResource
    resource_name: string
    resource_type: int8 1+ = 16
"""
