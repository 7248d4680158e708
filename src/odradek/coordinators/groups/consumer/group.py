"""ConsumerGroup (KIP-848): members, epochs, target assignment and current assignment.

All fields except the two soft ones come from records. Only `apply` changes them: on the group itself in
replay, or on a copy for a decision (draft.py). A record may have thousands of topics, so `apply` is paced
work. The group is not used between two steps.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from uuid import UUID

from odradek.coordinators.groups.consumer import records as r
from odradek.coordinators.groups.consumer.assignors import NO_PARTITIONS, Assignment
from odradek.coordinators.groups.consumer.member import LEFT, ConsumerMember, MemberState, PartitionEpochs
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL, STEP_CALLS
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
from odradek.runtime.slices import FEW, STEP, Paced, at_once

FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1
NO_OWNERS: Mapping[int, str] = {}


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
        self.owners: dict[UUID, Mapping[int, str]] = {}
        """By topic: the member that owns each partition, or still has to revoke it. The inner maps are
        immutable."""
        self.regexes: dict[str, r.ResolvedRegex] = {}
        self.has_partition_metadata = False
        """Whether a release before 4.1 left a record that is no longer needed."""
        self.is_deleted = False
        self._topics: frozenset[str] | None = None
        self._regex_counts: dict[str, int] | None = None
        self.metadata_is_fresh = False
        """Soft: whether the group's epoch reflects the current topics."""
        self.regex_refreshed_at_ms: int | None = None
        """Soft: when its regular expressions were last resolved, in steady time."""

    def copy(self) -> "ConsumerGroup":
        """A copy. Values that both share are never changed in place."""
        other = ConsumerGroup(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, dict(value) if isinstance(value, dict) else value)
        return other

    # --- replay ---------------------------------------------------------------------------------------

    def apply(self, key: Any, value: Any | None) -> Paced[None]:
        steps = self._APPLY[type(key)](self, key, value)
        if steps is not None:
            yield from steps
        yield STEP

    def _apply_epoch(self, key: ConsumerGroupMetadataKey, value: Any | None) -> None:
        if value is None:
            self.is_deleted = True
        else:
            self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _apply_partition_metadata(self, key: ConsumerGroupPartitionMetadataKey, value: Any | None) -> None:
        self.has_partition_metadata = value is not None

    def _apply_member(self, key: ConsumerGroupMemberMetadataKey, value: Any | None) -> Paced[None]:
        member = self.members.get(key.member_id)
        if value is not None:
            yield len(value.subscribed_topic_names) // ENTRIES_PER_CALL
            yield from self._put(r.with_metadata(member or ConsumerMember(key.member_id), value))
            self._topics = self._regex_counts = None
        elif member is not None:
            yield from self._release(member)
            del self.members[key.member_id]
            if (
                member.instance_id is not None
                and self.static_members.get(member.instance_id) == key.member_id
            ):
                del self.static_members[member.instance_id]
            self._topics = self._regex_counts = None

    def _apply_current(self, key: ConsumerGroupCurrentMemberAssignmentKey, value: Any | None) -> Paced[None]:
        member = self.members.get(key.member_id)
        if value is not None:
            assigned = yield from r.with_assignment(member or ConsumerMember(key.member_id), value)
            yield from self._put(assigned)
        elif member is not None:
            yield from self._put(
                member._replace(
                    member_epoch=LEFT, previous_member_epoch=LEFT, assigned={}, pending_revocation={}
                )
            )

    def _apply_target(self, key: ConsumerGroupTargetAssignmentMemberKey, value: Any | None) -> Paced[None]:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = yield from r.target_of(value)

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

    _APPLY: ClassVar[dict[type, Callable[..., Paced[None] | None]]] = {
        ConsumerGroupMetadataKey: _apply_epoch,
        ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
        ConsumerGroupMemberMetadataKey: _apply_member,
        ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
        ConsumerGroupTargetAssignmentMemberKey: _apply_target,
        ConsumerGroupCurrentMemberAssignmentKey: _apply_current,
        ConsumerGroupRegularExpressionKey: _apply_regex,
    }

    def _put(self, member: ConsumerMember) -> Paced[None]:
        old = self.members.get(member.member_id)
        has_moved = old is None or (
            old.assigned is not member.assigned or old.pending_revocation is not member.pending_revocation
        )
        if old is not None and has_moved:
            yield from self._release(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if has_moved:
            for partitions in (member.assigned, member.pending_revocation):
                yield from self._own(member.member_id, partitions)

    def _own(self, member_id: str, partitions: PartitionEpochs) -> Paced[None]:
        calls = 0
        for topic_id, numbers in partitions.items():
            owners = self.owners.get(topic_id, {})
            self.owners[topic_id] = {**owners, **dict.fromkeys(numbers, member_id)}
            calls += 2 * FEW + (len(owners) + len(numbers)) // ENTRIES_PER_CALL
            if calls > STEP_CALLS:
                yield calls
                calls = 0
        yield calls

    def _release(self, member: ConsumerMember) -> Paced[None]:
        for partitions in (member.assigned, member.pending_revocation):
            yield from self._disown(member.member_id, partitions)

    def _disown(self, member_id: str, partitions: PartitionEpochs) -> Paced[None]:
        calls = 0
        for topic_id, numbers in partitions.items():
            owners = self.owners.get(topic_id)
            if owners is not None:
                left = {p: owner for p, owner in owners.items() if owner != member_id or p not in numbers}
                if left:
                    self.owners[topic_id] = left
                else:
                    del self.owners[topic_id]
                calls += 2 * len(owners) // ENTRIES_PER_CALL
            calls += 2 * FEW
            if calls > STEP_CALLS:
                yield calls
                calls = 0
        yield calls

    # --- questions ------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        for member in self.members.values():
            if member.member_epoch != self.assignment_epoch or member.state is not MemberState.STABLE:
                return "Reconciling"
        return "Stable"

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topics that members name, and those that their regular expressions match."""
        return at_once(self.collect_topics())

    @property
    def topics_if_known(self) -> frozenset[str] | None:
        """`subscribed_topics`, or None if they have changed and were not collected since."""
        return self._topics

    def collect_topics(self) -> Paced[frozenset[str]]:
        """`subscribed_topics` as paced work. Cached until a record changes them. No record is applied between
        two steps."""
        if self._topics is None:
            names: set[str] = set()
            calls = 0
            for member in self.members.values():
                names |= member.subscribed_topic_names
                calls += 1 + len(member.subscribed_topic_names) // ENTRIES_PER_CALL
                if calls > STEP_CALLS:
                    yield calls
                    calls = 0
            for regex in self.subscribed_regexes:
                if regex in self.regexes:
                    names |= self.regexes[regex].topics
                    yield FEW + len(self.regexes[regex].topics) // ENTRIES_PER_CALL
            self._topics = frozenset(names)
        return self._topics

    @property
    def subscribed_regexes(self) -> dict[str, int]:
        """The regular expressions of the members, and how many members have each."""
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
        """The assignor that most members request, or the default."""
        asked = Counter([m.server_assignor for m in self.members.values() if m.server_assignor is not None])
        return str(max(sorted(asked), key=lambda name: asked[name], default=default))

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NO_PARTITIONS)

    def owners_of(self, topic_id: UUID) -> Mapping[int, str]:
        """The owned partitions of a topic, with their owners."""
        return self.owners.get(topic_id, NO_OWNERS)

    def waits_for_others(self, member: ConsumerMember) -> Paced[bool]:
        """Whether another member still owns a partition of the member's target."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        for topic_id, partitions in self.target(member.member_id).items():
            owners, has = self.owners_of(topic_id), member.assigned.get(topic_id, {})
            yield 2 * FEW + len(partitions) // ENTRIES_PER_CALL
            for partition in partitions:
                if partition in owners and partition not in has:
                    return True
        return False

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
        for member in self.members.values():
            if member.classic is None and member.member_id not in member_ids:
                return False
        return True

    def tombstones(self) -> Paced[list[Record]]:
        members = dict.fromkeys((*self.members, *self.targets))
        yield len(members) // ENTRIES_PER_CALL
        return (
            yield from r.group_tombstones(self.group_id, members, self.regexes, self.has_partition_metadata)
        )
