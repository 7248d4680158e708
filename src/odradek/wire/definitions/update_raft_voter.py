"""Layout of update_raft_voter by version, in the notation of wire/schema.py."""

REQUEST = """
UpdateRaftVoterRequest 0-0 flexible 0+
  cluster_id: string null
  current_leader_epoch: int32
  voter_id: int32
  voter_directory_id: uuid
  listeners: []Listener
    name: string
    host: string
    port: uint16
  k_raft_version_feature: KRaftVersionFeature
    min_supported_version: int16
    max_supported_version: int16
"""

RESPONSE = """
UpdateRaftVoterResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  current_leader: CurrentLeader tag 0
    leader_id: int32 = -1
    leader_epoch: int32 = -1
    host: string
    port: int32
"""
