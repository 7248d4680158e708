"""Layout of remove_raft_voter by version, in the notation of wire/schema.py."""

REQUEST = """
RemoveRaftVoterRequest 0-0 flexible 0+
  cluster_id: string null
  voter_id: int32
  voter_directory_id: uuid
"""

RESPONSE = """
RemoveRaftVoterResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null
"""
