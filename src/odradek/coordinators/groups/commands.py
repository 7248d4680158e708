"""The commands of a group shard. Plain data, independent of protocol versions. replies.py has the answers."""

import uuid
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from odradek.coordinators.plain import plain

FEW = 16
"""A command with more entries is long: it waits behind short ones if a command holds the slot."""


class MemberProtocol(NamedTuple):
    """An assignment protocol that a member supports, with the member's metadata for it."""

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
    """The member's id, if it does not send one."""
    known_member_required: bool
    """Answer a member without an id with a new id, with which it must join again (KIP-394)."""
    can_skip_assignment: bool
    """Whether the member's client supports `skip_assignment`."""


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
    """Clients before v9 do not know GROUP_ID_NOT_FOUND here."""
    producer: tuple[int, int] | None = None
    """The producer (id and epoch) whose transaction contains the commit."""

    @property
    def is_long(self) -> bool:
        return len(self.offsets) > FEW


class WantedTopic(NamedTuple):
    """A topic whose offsets are requested. `topic_id` is zero if the client sent a name."""

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[int]


@plain()
class FetchOffsets:
    """Without `topics`: all committed offsets of the group."""

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
    """Remove offsets older than `offsets.retention.minutes`, and empty groups without offsets."""

    is_long: ClassVar = True


@plain()
class ForgetTopics:
    """Remove the offsets of deleted topics, but not those of new topics with the same names."""

    topics: Mapping[str, uuid.UUID]
    is_long: ClassVar = True


@plain(kw_only=True)
class ConsumerHeartbeat:
    """A heartbeat of a member of a consumer group. A field is None if it has not changed."""

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
    """The member's id, if it does not send one."""

    @property
    def is_long(self) -> bool:
        return len(self.subscribed_topic_names or ()) > FEW or len(self.owned or ()) > FEW


@plain()
class DescribeConsumerGroup:
    group_id: str
