"""Layout of alter_configs by version, in the notation of wire/schema.py."""

REQUEST = """
AlterConfigsRequest 0-2 flexible 2+
  resources: []AlterConfigsResource
    resource_type: int8
    resource_name: string
    configs: []AlterableConfig
      name: string
      value: string null
  validate_only: bool
"""

RESPONSE = """
AlterConfigsResponse 0-2 flexible 2+
  throttle_time: int32
  responses: []AlterConfigsResourceResponse
    error_code: int16
    error_message: string null
    resource_type: int8
    resource_name: string
"""
