"""Layout of add_raft_voter by version, in the notation of wire/schema.py."""

REQUEST = """
AddRaftVoterRequest 0-1 flexible 0+
  cluster_id: string null
  timeout: int32
  voter_id: int32
  voter_directory_id: uuid
  listeners: []Listener
    name: string
    host: string
    port: uint16
  ack_when_committed: bool 1+ = true
"""

RESPONSE = """
AddRaftVoterResponse 0-1 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null
"""
