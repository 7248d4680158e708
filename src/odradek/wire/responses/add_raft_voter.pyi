"""Made by tools/stubs from definitions/add_raft_voter.py."""

from odradek.wire.classes import Message

class AddRaftVoterResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
