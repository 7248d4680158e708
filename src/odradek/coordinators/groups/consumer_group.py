"""A consumer group (KIP-848): its members, its epochs, who shall have what and who has it.

Everything but the two soft fields is what the records say and changes in `apply` alone, on the group itself
when replayed, or on a copy on which a decision is tried out (draft.py).
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

from odradek.coordinators.groups import consumer_records as r
from odradek.coordinators.groups.assignors import NO_PARTITIONS, Assignment
from odradek.coordinators.groups.consumer_member import LEFT, ConsumerMember, MemberState, PartitionEpochs
from odradek.coordinators.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from odradek.coordinators.shard import Record
from odradek.core.errors import ErrorCode, KafkaError

FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1


class ConsumerGroup:
    __slots__ = (
        "_regex_counts",
        "_topics",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "is_deleted",
        "members",
        "metadata_hash",
        "metadata_is_fresh",
        "owners",
        "regex_refreshed_at_ms",
        "regexes",
        "static_members",
        "targets",
    )

    group_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Assignment] = {}
        self.owners: dict[tuple[UUID, int], str] = {}
        """Who has a partition, or still has to give it up."""
        self.regexes: dict[str, r.ResolvedRegex] = {}
        self.has_partition_metadata = False
        """A release before 4.1 left a record that is not needed any more."""
        self.is_deleted = False
        self._topics: frozenset[str] | None = None
        self._regex_counts: dict[str, int] | None = None
        self.metadata_is_fresh = False
        """Soft: the group's epoch takes the topics into account as they are now."""
        self.regex_refreshed_at_ms: int | None = None
        """Soft: when its regular expressions were last resolved, in steady time."""

    def copy(self) -> "ConsumerGroup":
        """Another group with the same values; what both share is never changed in place."""
        other = ConsumerGroup(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, dict(value) if isinstance(value, dict) else value)
        return other

    # --- replay ---------------------------------------------------------------------------------------

    def apply(self, key: Any, value: Any | None) -> None:
        self._APPLY[type(key)](self, key, value)

    def _apply_epoch(self, key: ConsumerGroupMetadataKey, value: Any | None) -> None:
        if value is None:
            self.is_deleted = True
        else:
            self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _apply_partition_metadata(self, key: ConsumerGroupPartitionMetadataKey, value: Any | None) -> None:
        self.has_partition_metadata = value is not None

    def _apply_member(self, key: ConsumerGroupMemberMetadataKey, value: Any | None) -> None:
        member = self.members.get(key.member_id)
        if value is not None:
            self._put(r.with_metadata(member or ConsumerMember(key.member_id), value))
            self._topics = self._regex_counts = None
        elif member is not None:
            self._release(member)
            del self.members[key.member_id]
            if (
                member.instance_id is not None
                and self.static_members.get(member.instance_id) == key.member_id
            ):
                del self.static_members[member.instance_id]
            self._topics = self._regex_counts = None

    def _apply_current(self, key: ConsumerGroupCurrentMemberAssignmentKey, value: Any | None) -> None:
        member = self.members.get(key.member_id)
        if value is not None:
            self._put(r.with_assignment(member or ConsumerMember(key.member_id), value))
        elif member is not None:
            self._put(
                member._replace(
                    member_epoch=LEFT, previous_member_epoch=LEFT, assigned={}, pending_revocation={}
                )
            )

    def _apply_target(self, key: ConsumerGroupTargetAssignmentMemberKey, value: Any | None) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = r.target_of(value)

    def _apply_target_epoch(self, key: ConsumerGroupTargetAssignmentMetadataKey, value: Any | None) -> None:
        if value is None:
            self.assignment_epoch, self.assignment_timestamp_ms = NO_ASSIGNMENT_EPOCH, 0
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def _apply_regex(self, key: ConsumerGroupRegularExpressionKey, value: Any | None) -> None:
        if value is None:
            self.regexes.pop(key.regular_expression, None)
        else:
            self.regexes[key.regular_expression] = r.ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )
        self._topics = None

    _APPLY: ClassVar[dict[type, Callable[..., None]]] = {
        ConsumerGroupMetadataKey: _apply_epoch,
        ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
        ConsumerGroupMemberMetadataKey: _apply_member,
        ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
        ConsumerGroupTargetAssignmentMemberKey: _apply_target,
        ConsumerGroupCurrentMemberAssignmentKey: _apply_current,
        ConsumerGroupRegularExpressionKey: _apply_regex,
    }

    def _put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, numbers in partitions.items():
                for partition in numbers:
                    self.owners[topic_id, partition] = member.member_id

    def _release(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.pending_revocation):
            self._disown(member.member_id, partitions)

    def _disown(self, member_id: str, partitions: PartitionEpochs) -> None:
        for topic_id, numbers in partitions.items():
            for partition in numbers:
                if self.owners.get((topic_id, partition)) == member_id:
                    del self.owners[topic_id, partition]

    # --- questions ------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(m.is_reconciled_to(self.assignment_epoch) for m in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """All that members name, and all that their regular expressions matched."""
        if self._topics is None:
            names: set[str] = set()
            for member in self.members.values():
                names |= member.subscribed_topic_names
            for regex in self.subscribed_regexes:
                if regex in self.regexes:
                    names |= self.regexes[regex].topics
            self._topics = frozenset(names)
        return self._topics

    @property
    def subscribed_regexes(self) -> dict[str, int]:
        """The regular expressions of the members, and how many have each."""
        if self._regex_counts is None:
            self._regex_counts = {}
            for member in self.members.values():
                regex = member.subscribed_topic_regex
                if regex:
                    self._regex_counts[regex] = self._regex_counts.get(regex, 0) + 1
        return self._regex_counts

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        regex = member.subscribed_topic_regex
        if not regex or regex not in self.regexes:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | self.regexes[regex].topics

    def preferred_assignor(self, default: str) -> str:
        """What most members ask for; the default where nobody asks."""
        asked = Counter(m.server_assignor for m in self.members.values() if m.server_assignor is not None)
        return str(max(sorted(asked), key=lambda name: asked[name], default=default))

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NO_PARTITIONS)

    def is_held(self, topic_id: UUID, partition: int) -> bool:
        return (topic_id, partition) in self.owners

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether somebody still has a partition that the member shall have."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic_id, {}) and self.is_held(topic_id, partition)
            for topic_id, partitions in self.target(member.member_id).items()
            for partition in partitions
        )

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return found

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def all_classic_without(self, member_ids: frozenset[str]) -> bool:
        return all(m.uses_classic_protocol for m in self.members.values() if m.member_id not in member_ids)

    def tombstones(self) -> list[Record]:
        members = dict.fromkeys((*self.members, *self.targets))
        return r.group_tombstones(self.group_id, members, self.regexes, self.has_partition_metadata)
