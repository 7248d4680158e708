"""Made by tools/stubs from definitions/update_raft_voter.py."""

from odradek.wire.classes import Message

class UpdateRaftVoterResponse(Message):
    throttle_time: int
    error_code: int
    current_leader: CurrentLeader
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., current_leader: CurrentLeader = ...
    ) -> None: ...

class CurrentLeader(Message):
    leader_id: int
    leader_epoch: int
    host: str
    port: int
    def __init__(
        self, *, leader_id: int = ..., leader_epoch: int = ..., host: str = ..., port: int = ...
    ) -> None: ...
