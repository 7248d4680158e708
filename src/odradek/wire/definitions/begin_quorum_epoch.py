"""Layout of begin_quorum_epoch by version, in the notation of wire/schema.py."""

REQUEST = """
BeginQuorumEpochRequest 0-1 flexible 1+
  cluster_id: string null = null
  voter_id: int32 1+ = -1
  topics: []TopicData
    topic_name: string
    partitions: []PartitionData
      partition_index: int32
      voter_directory_id: uuid 1+
      leader_id: int32
      leader_epoch: int32
  leader_endpoints: []LeaderEndpoint 1+
    name: string
    host: string
    port: uint16
"""

RESPONSE = """
BeginQuorumEpochResponse 0-1 flexible 1+
  error_code: int16
  topics: []TopicData
    topic_name: string
    partitions: []PartitionData
      partition_index: int32
      error_code: int16
      leader_id: int32
      leader_epoch: int32
  node_endpoints: []NodeEndpoint 1+ tag 0
    node_id: int32
    host: string
    port: uint16
"""
