"""Layout of create_topics by version, in the notation of wire/schema.py."""

REQUEST = """
CreateTopicsRequest 2-7 flexible 5+
  topics: []CreatableTopic
    name: string
    num_partitions: int32
    replication_factor: int16
    assignments: []CreatableReplicaAssignment
      partition_index: int32
      broker_ids: []int32
    configs: []CreatableTopicConfig
      name: string
      value: string null
  timeout: int32 = 60000
  validate_only: bool
"""

RESPONSE = """
CreateTopicsResponse 2-7 flexible 5+
  throttle_time: int32
  topics: []CreatableTopicResult
    name: string
    topic_id: uuid 7+
    error_code: int16
    error_message: string null
    topic_config_error_code: int16 5+ tag 0
    num_partitions: int32 5+ = -1
    replication_factor: int16 5+ = -1
    configs: []CreatableTopicConfigs 5+ null
      name: string
      value: string null
      read_only: bool
      config_source: int8 = -1
      is_sensitive: bool
"""
