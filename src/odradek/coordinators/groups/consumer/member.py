"""A member of a consumer group (KIP-848), as in its records. Immutable."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from odradek.coordinators.groups.commands import MemberProtocol

LEFT = -1
"""The epoch of a member that leaves."""
LEFT_FOR_A_WHILE = -2
"""The epoch of a static member that leaves temporarily and may return within its session timeout."""
NO_REBALANCE_TIMEOUT = -1

PartitionEpochs = Mapping[UUID, Mapping[int, int]]
"""By topic and partition: the epoch at which the member got it."""
NO_PARTITION_EPOCHS: PartitionEpochs = MappingProxyType({})


class MemberState(IntEnum):
    """The state of a member between its current and its target assignment."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It must revoke partitions first, and stays at its epoch until then."""
    UNRELEASED_PARTITIONS = 2
    """It is at the target's epoch, but other members still own some of its partitions."""
    UNKNOWN = 127
    """Written by a release with more states."""

    @classmethod
    def of(cls, value: int) -> "MemberState":
        return cls(value) if value in (0, 1, 2) else cls.UNKNOWN


class ClassicSession(NamedTuple):
    """The additional fields of a member with the classic protocol."""

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
        """The epoch at which the member got a partition that it owns or still has to revoke."""
        given = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if given is None else given
