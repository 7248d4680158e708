"""Layout of assign_replicas_to_dirs by version, in the notation of wire/schema.py."""

REQUEST = """
AssignReplicasToDirsRequest 0-0 flexible 0+
  broker_id: int32
  broker_epoch: int64 = -1
  directories: []DirectoryData
    id_: uuid
    topics: []TopicData
      topic_id: uuid
      partitions: []PartitionData
        partition_index: int32
"""

RESPONSE = """
AssignReplicasToDirsResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  directories: []DirectoryData
    id_: uuid
    topics: []TopicData
      topic_id: uuid
      partitions: []PartitionData
        partition_index: int32
        error_code: int16
"""
