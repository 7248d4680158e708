"""A member of a consumer group (KIP-848), as its records describe it. Immutable: a change is a new value."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from odradek.coordinators.groups.commands import MemberProtocol

LEFT = -1
"""The epoch of a member that leaves for good."""
LEFT_FOR_A_WHILE = -2
"""The epoch of a static member that will be back within its session."""
NO_REBALANCE_TIMEOUT = -1

PartitionEpochs = Mapping[UUID, Mapping[int, int]]
"""Topic, partition, and the epoch at which the member was given it."""
NO_PARTITION_EPOCHS: PartitionEpochs = MappingProxyType({})


class MemberState(IntEnum):
    """Where a member stands between what it has and what it shall have."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions first and stays in its epoch until it has."""
    UNRELEASED_PARTITIONS = 2
    """It is in the target's epoch, but others still hold partitions of its."""
    UNKNOWN = 127
    """Written by a release that knows more states."""

    @classmethod
    def of(cls, value: int) -> "MemberState":
        return cls(value) if value in (0, 1, 2) else cls.UNKNOWN


class ClassicSession(NamedTuple):
    """What is kept of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


class ConsumerMember(NamedTuple):
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = NO_REBALANCE_TIMEOUT
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicSession | None = None
    assigned: PartitionEpochs = NO_PARTITION_EPOCHS
    pending_revocation: PartitionEpochs = NO_PARTITION_EPOCHS

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def at_epoch(self, epoch: int) -> "ConsumerMember":
        return self._replace(member_epoch=epoch, previous_member_epoch=self.member_epoch)

    def epoch_of(self, topic_id: UUID, partition: int) -> int | None:
        """When the member was given a partition that it has, or still has to give up."""
        given = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if given is None else given
