"""Layout of fetch_snapshot by version, in the notation of wire/schema.py."""

REQUEST = """
FetchSnapshotRequest 0-1 flexible 0+
  cluster_id: string null tag 0 = null
  replica_id: int32 = -1
  max_bytes: int32 = 2147483647
  topics: []TopicSnapshot
    name: string
    partitions: []PartitionSnapshot
      partition: int32
      current_leader_epoch: int32
      snapshot_id: SnapshotId
        end_offset: int64
        epoch: int32
      position: int64
      replica_directory_id: uuid 1+ tag 0
"""

RESPONSE = """
FetchSnapshotResponse 0-1 flexible 0+
  throttle_time: int32
  error_code: int16
  topics: []TopicSnapshot
    name: string
    partitions: []PartitionSnapshot
      index: int32
      error_code: int16
      snapshot_id: SnapshotId
        end_offset: int64
        epoch: int32
      current_leader: LeaderIdAndEpoch tag 0
        leader_id: int32
        leader_epoch: int32
      size: int64
      position: int64
      unaligned_records: records
  node_endpoints: []NodeEndpoint 1+ tag 0
    node_id: int32
    host: string
    port: uint16
"""
