"""Made by tools/stubs from definitions/elect_leaders.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ElectLeadersResponse(Message):
    throttle_time: int
    error_code: int
    replica_election_results: Sequence[ReplicaElectionResult]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        replica_election_results: Sequence[ReplicaElectionResult] = ...,
    ) -> None: ...

class ReplicaElectionResult(Message):
    topic: str
    partition_result: Sequence[PartitionResult]
    def __init__(self, *, topic: str = ..., partition_result: Sequence[PartitionResult] = ...) -> None: ...

class PartitionResult(Message):
    partition_id: int
    error_code: int
    error_message: str | None
    def __init__(
        self, *, partition_id: int = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
