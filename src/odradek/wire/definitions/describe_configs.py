"""Layout of describe_configs by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeConfigsRequest 1-4 flexible 4+
  resources: []DescribeConfigsResource
    resource_type: int8
    resource_name: string
    configuration_keys: []string null
  include_synonyms: bool
  include_documentation: bool 3+
"""

RESPONSE = """
DescribeConfigsResponse 1-4 flexible 4+
  throttle_time: int32
  results: []DescribeConfigsResult
    error_code: int16
    error_message: string null
    resource_type: int8
    resource_name: string
    configs: []DescribeConfigsResourceResult
      name: string
      value: string null
      read_only: bool
      config_source: int8 = -1
      is_sensitive: bool
      synonyms: []DescribeConfigsSynonym
        name: string
        value: string null
        source: int8
      config_type: int8 3+
      documentation: string 3+ null
"""
