"""Made by tools/stubs from definitions/update_raft_voter.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class UpdateRaftVoterRequest(Message):
    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: UUID
    listeners: Sequence[Listener]
    k_raft_version_feature: KRaftVersionFeature
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        current_leader_epoch: int = ...,
        voter_id: int = ...,
        voter_directory_id: UUID = ...,
        listeners: Sequence[Listener] = ...,
        k_raft_version_feature: KRaftVersionFeature = ...,
    ) -> None: ...

class Listener(Message):
    name: str
    host: str
    port: int
    def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...

class KRaftVersionFeature(Message):
    min_supported_version: int
    max_supported_version: int
    def __init__(self, *, min_supported_version: int = ..., max_supported_version: int = ...) -> None: ...
