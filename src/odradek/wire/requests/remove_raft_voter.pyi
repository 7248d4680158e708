"""Made by tools/stubs from definitions/remove_raft_voter.py."""

from uuid import UUID

from odradek.wire.classes import Message

class RemoveRaftVoterRequest(Message):
    cluster_id: str | None
    voter_id: int
    voter_directory_id: UUID
    def __init__(
        self, *, cluster_id: str | None = ..., voter_id: int = ..., voter_directory_id: UUID = ...
    ) -> None: ...
