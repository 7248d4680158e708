"""Layout of end_quorum_epoch by version, in the notation of wire/schema.py."""

REQUEST = """
EndQuorumEpochRequest 0-1 flexible 1+
  cluster_id: string null = null
  topics: []TopicData
    topic_name: string
    partitions: []PartitionData
      partition_index: int32
      leader_id: int32
      leader_epoch: int32
      preferred_successors: []int32 0-0
      preferred_candidates: []ReplicaInfo 1+
        candidate_id: int32
        candidate_directory_id: uuid
  leader_endpoints: []LeaderEndpoint 1+
    name: string
    host: string
    port: uint16
"""

RESPONSE = """
EndQuorumEpochResponse 0-1 flexible 1+
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
