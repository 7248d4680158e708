"""Layout of incremental_alter_configs by version, in the notation of wire/schema.py."""

REQUEST = """
IncrementalAlterConfigsRequest 0-1 flexible 1+
  resources: []AlterConfigsResource
    resource_type: int8
    resource_name: string
    configs: []AlterableConfig
      name: string
      config_operation: int8
      value: string null
  validate_only: bool
"""

RESPONSE = """
IncrementalAlterConfigsResponse 0-1 flexible 1+
  throttle_time: int32
  responses: []AlterConfigsResourceResponse
    error_code: int16
    error_message: string null
    resource_type: int8
    resource_name: string
"""
