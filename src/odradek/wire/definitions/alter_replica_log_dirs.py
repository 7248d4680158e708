"""Layout of alter_replica_log_dirs by version, in the notation of wire/schema.py."""

REQUEST = """
AlterReplicaLogDirsRequest 1-2 flexible 2+
  dirs: []AlterReplicaLogDir
    path: string
    topics: []AlterReplicaLogDirTopic
      name: string
      partitions: []int32
"""

RESPONSE = """
AlterReplicaLogDirsResponse 1-2 flexible 2+
  throttle_time: int32
  results: []AlterReplicaLogDirTopicResult
    topic_name: string
    partitions: []AlterReplicaLogDirPartitionResult
      partition_index: int32
      error_code: int16
"""
