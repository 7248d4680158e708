"""Made by tools/stubs from definitions/elect_leaders.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ElectLeadersRequest(Message):
    election_type: int
    topic_partitions: Sequence[TopicPartitions] | None
    timeout: int
    def __init__(
        self,
        *,
        election_type: int = ...,
        topic_partitions: Sequence[TopicPartitions] | None = ...,
        timeout: int = ...,
    ) -> None: ...

class TopicPartitions(Message):
    topic: str
    partitions: Sequence[int]
    def __init__(self, *, topic: str = ..., partitions: Sequence[int] = ...) -> None: ...
