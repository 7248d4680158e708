"""Made by tools/stubs from definitions/add_raft_voter.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class AddRaftVoterRequest(Message):
    cluster_id: str | None
    timeout: int
    voter_id: int
    voter_directory_id: UUID
    listeners: Sequence[Listener]
    ack_when_committed: bool
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        timeout: int = ...,
        voter_id: int = ...,
        voter_directory_id: UUID = ...,
        listeners: Sequence[Listener] = ...,
        ack_when_committed: bool = ...,
    ) -> None: ...

class Listener(Message):
    name: str
    host: str
    port: int
    def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
