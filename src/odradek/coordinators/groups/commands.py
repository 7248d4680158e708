"""What a group shard is asked. Plain data, free of protocol versions; the answers are in replies.py."""

import uuid
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from odradek.coordinators.plain import plain

FEW = 16
"""A command about more entries waits behind the others when its group's shard is taken."""


class MemberProtocol(NamedTuple):
    """A way to assign partitions that a member supports, with what it tells the leader about itself."""

    name: str
    metadata: bytes


@plain(kw_only=True)
class JoinGroup:
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    new_member_id: str
    """The id the member gets if it brings none."""
    known_member_required: bool
    """Send a member without an id away with one first (KIP-394)."""
    can_skip_assignment: bool
    """The member's client knows `skip_assignment`."""


@plain(kw_only=True)
class SyncGroup:
    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Sequence[tuple[str, bytes]]

    @property
    def is_long(self) -> bool:
        return len(self.assignments) > FEW


@plain()
class Heartbeat:
    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int


class LeavingMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    reason: str | None = None


@plain()
class LeaveGroup:
    group_id: str
    members: Sequence[LeavingMember]

    @property
    def is_long(self) -> bool:
        return len(self.members) > FEW


class OffsetToCommit(NamedTuple):
    topic: str
    topic_id: uuid.UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@plain()
class CommitOffsets:
    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    offsets: Sequence[OffsetToCommit]
    retention_time_ms: int = -1
    unknown_group_is_illegal_generation: bool = False
    """Clients before v9 know no GROUP_ID_NOT_FOUND here."""
    producer: tuple[int, int] | None = None
    """Whose transaction the commit is part of: producer id and epoch."""

    @property
    def is_long(self) -> bool:
        return len(self.offsets) > FEW


class WantedTopic(NamedTuple):
    """A topic whose offsets are asked for; `topic_id` is zero where the client named it."""

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[int]


@plain()
class FetchOffsets:
    """Without `topics`, all that the group has committed."""

    group_id: str
    topics: Sequence[WantedTopic] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1

    @property
    def is_long(self) -> bool:
        return self.topics is None or sum(len(topic.partitions) for topic in self.topics) > FEW


@plain()
class DeleteOffsets:
    group_id: str
    topics: Sequence[tuple[str, Sequence[int]]]
    is_long: ClassVar = True


@plain()
class ListGroups:
    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    is_long: ClassVar = True


@plain()
class DescribeGroup:
    group_id: str


@plain()
class DeleteGroup:
    group_id: str


@plain()
class ExpireOffsets:
    """Drop what `offsets.retention.minutes` has run out for, and groups that have nothing left."""

    is_long: ClassVar = True


@plain()
class ForgetTopics:
    """Topics were deleted, and so are their offsets, but not those of new topics with the same names."""

    topics: Mapping[str, uuid.UUID]
    is_long: ClassVar = True


@plain(kw_only=True)
class ConsumerHeartbeat:
    """What a member of a consumer group says; None where nothing has changed."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Mapping[uuid.UUID, frozenset[int]] | None = None
    client_id: str = ""
    client_host: str = ""
    new_member_id: str = ""
    """The id the member gets if it brings none."""

    @property
    def is_long(self) -> bool:
        return len(self.subscribed_topic_names or ()) > FEW or len(self.owned or ()) > FEW


@plain()
class DescribeConsumerGroup:
    group_id: str
