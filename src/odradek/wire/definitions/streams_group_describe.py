"""Layout of streams_group_describe by version, in the notation of wire/schema.py."""

REQUEST = """
StreamsGroupDescribeRequest 0-0 flexible 0+
  group_ids: []string
  include_authorized_operations: bool
"""

RESPONSE = """
StreamsGroupDescribeResponse 0-0 flexible 0+
  throttle_time: int32
  groups: []DescribedGroup
    error_code: int16
    error_message: string null = null
    group_id: string
    group_state: string
    group_epoch: int32
    assignment_epoch: int32
    topology: Topology null = null
      epoch: int32
      subtopologies: []Subtopology null
        subtopology_id: string
        source_topics: []string
        repartition_sink_topics: []string
        state_changelog_topics: []TopicInfo
          name: string
          partitions: int32
          replication_factor: int16
          topic_configs: []KeyValue
            key: string
            value: string
        repartition_source_topics: []TopicInfo
    members: []Member
      member_id: string
      member_epoch: int32
      instance_id: string null = null
      rack_id: string null = null
      client_id: string
      client_host: string
      topology_epoch: int32
      process_id: string
      user_endpoint: Endpoint null = null
        host: string
        port: uint16
      client_tags: []KeyValue
      task_offsets: []TaskOffset
        subtopology_id: string
        partition: int32
        offset: int64
      task_end_offsets: []TaskOffset
      assignment: Assignment
        active_tasks: []TaskIds
          subtopology_id: string
          partitions: []int32
        standby_tasks: []TaskIds
        warmup_tasks: []TaskIds
      target_assignment: Assignment
      is_classic: bool
    authorized_operations: int32 = -2147483648
"""
