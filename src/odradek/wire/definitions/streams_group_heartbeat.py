"""Layout of streams_group_heartbeat by version, in the notation of wire/schema.py."""

REQUEST = """
StreamsGroupHeartbeatRequest 0-0 flexible 0+
  group_id: string
  member_id: string
  member_epoch: int32
  endpoint_information_epoch: int32
  instance_id: string null = null
  rack_id: string null = null
  rebalance_timeout: int32 = -1
  topology: Topology null = null
    epoch: int32
    subtopologies: []Subtopology
      subtopology_id: string
      source_topics: []string
      source_topic_regex: []string
      state_changelog_topics: []TopicInfo
        name: string
        partitions: int32
        replication_factor: int16
        topic_configs: []KeyValue
          key: string
          value: string
      repartition_sink_topics: []string
      repartition_source_topics: []TopicInfo
      copartition_groups: []CopartitionGroup
        source_topics: []int16
        source_topic_regex: []int16
        repartition_source_topics: []int16
  active_tasks: []TaskIds null
    subtopology_id: string
    partitions: []int32
  standby_tasks: []TaskIds null
  warmup_tasks: []TaskIds null
  process_id: string null = null
  user_endpoint: Endpoint null = null
    host: string
    port: uint16
  client_tags: []KeyValue null
  task_offsets: []TaskOffset null
    subtopology_id: string
    partition: int32
    offset: int64
  task_end_offsets: []TaskOffset null
  shutdown_application: bool
"""

RESPONSE = """
StreamsGroupHeartbeatResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null = null
  member_id: string
  member_epoch: int32
  heartbeat_interval: int32
  acceptable_recovery_lag: int32
  task_offset_interval: int32
  status: []Status null
    status_code: int8
    status_detail: string
  active_tasks: []TaskIds null
    subtopology_id: string
    partitions: []int32
  standby_tasks: []TaskIds null
  warmup_tasks: []TaskIds null
  endpoint_information_epoch: int32
  partitions_by_user_endpoint: []EndpointToPartitions null
    user_endpoint: Endpoint
      host: string
      port: uint16
    active_partitions: []TopicPartition
      topic: string
      partitions: []int32
    standby_partitions: []TopicPartition
"""
