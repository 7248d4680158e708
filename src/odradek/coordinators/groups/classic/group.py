"""ClassicGroup: the members, generation and protocol of a classic group. rebalance.py moves it between
states.

`persisted` is the group's last record in the log. Only replay changes it, by `hydrate` and `adopt`. The other
fields are the generation in progress, which only the waiting members have seen. In Stable and Empty both
agree, as `check` asserts.

Work that goes through all members is paced. The group is not used between two steps.
"""

from collections.abc import Iterable

from odradek.coordinators.groups.classic.member import ClassicGroupMember
from odradek.coordinators.groups.classic.states import GroupState, may_move
from odradek.coordinators.groups.classic.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from odradek.coordinators.groups.commands import MemberProtocol
from odradek.coordinators.records import GroupMetadataValue
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import FEW, Paced

NO_TIMESTAMP = -1


class ClassicGroup:
    __slots__ = (
        "_supporters",
        "awaiting_join_count",
        "generation_id",
        "group_id",
        "incoming",
        "initial_delays_ms",
        "leader_id",
        "members",
        "new_member_added",
        "pending_join",
        "pending_sync",
        "persisted",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_since_ms",
        "static_members",
        "topics",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.persisted: GroupMetadataValue | None = None
        self.state = self.previous_state = GroupState.EMPTY
        self.state_since_ms = NO_TIMESTAMP
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.topics: frozenset[str] | None = None
        """The topics that the members subscribe to; None if the coordinator cannot know."""
        self.pending_join: dict[str, None] = {}
        """New member ids (KIP-394) whose members have not joined with them yet."""
        self.pending_sync: dict[str, None] = {}
        """Members of the generation that have not sent a SyncGroup yet."""
        self.incoming: ClassicGroupMember | None = None
        """A static member that replaces its predecessor as soon as its record is in the log."""
        self.awaiting_join_count = 0
        self.new_member_added = False
        self.initial_delays_ms = (0, 0)
        self._supporters: dict[str, int] = {}

    # --- replay ---------------------------------------------------------------------------------------

    def hydrate(self, value: GroupMetadataValue) -> Paced[None]:
        """Take the state of a record from the log, whatever the group was before."""
        self.persisted = value
        self.generation_id = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.state_since_ms = value.current_state_timestamp
        self.state = self.previous_state = GroupState.STABLE if value.members else GroupState.EMPTY
        members = []
        for record in value.members:
            members.append(ClassicGroupMember.from_record(record, value.protocol))
            yield 2 * FEW
        yield from self._replace_members(members)
        self.leader_id = value.leader if value.leader in self.members else next(iter(self.members), None)
        self.topics = yield from self._subscribed_topics()

    def adopt(self, value: GroupMetadataValue) -> Paced[None]:
        """The group's own record is in the log: the generation in progress becomes the current one."""
        self.persisted = value
        incoming, self.incoming = self.incoming, None
        if value.members:
            known = dict(self.members)
            if incoming is not None:
                known[incoming.member_id] = incoming
            members = []
            for record in value.members:
                member = known[record.member_id]
                member.assignment = record.assignment
                members.append(member)
                yield 1
            yield from self._replace_members(members)
            if self.state is GroupState.COMPLETING_REBALANCE:
                self.transition(GroupState.STABLE, value.current_state_timestamp)
        else:
            assert not self.members, "an empty generation has no members"
            self.transition(GroupState.EMPTY, value.current_state_timestamp)
        self.generation_id = value.generation
        self.protocol_name = value.protocol
        self.leader_id = value.leader
        self.topics = yield from self._subscribed_topics()
        self.check()

    def record(self, assignments: dict[str, bytes], now_ms: int) -> Paced[GroupMetadataValue]:
        """The generation in progress as a record. A static successor already replaces its predecessor in
        it."""
        leader = self.leader_id
        members = list(self.members.values())
        incoming = self.incoming
        if incoming is not None:
            assert incoming.group_instance_id is not None
            old_id = self.static_members[incoming.group_instance_id]
            members = [m for m in members if m.member_id != old_id]
            members.append(incoming)
            leader = incoming.member_id if leader == old_id else leader
        records = []
        for member in members:
            records.append(member.to_record(self.protocol_name, assignments[member.member_id]))
            yield 2 * FEW
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=leader,
            current_state_timestamp=now_ms,
            members=tuple(records),
        )

    def empty_record(self, now_ms: int) -> GroupMetadataValue:
        """The next generation, without members."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id + 1,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=(),
        )

    def check(self) -> None:
        """Assert that a stable or empty group agrees with its record."""
        assert 0 <= self.awaiting_join_count <= len(self.members)
        assert (self.leader_id is None) == (not self.members)
        assert self.leader_id is None or self.leader_id in self.members
        value = self.persisted
        if value is None or self.state not in (GroupState.STABLE, GroupState.EMPTY):
            return
        assert value.generation == self.generation_id
        assert [m.member_id for m in value.members] == list(self.members)

    # --- members --------------------------------------------------------------------------------------

    def add(self, member: ClassicGroupMember, protocol_type: str) -> None:
        assert member.member_id not in self.members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.pending_join.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member, or a pending member id. Its waiting requests must be answered before."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.awaiting_join is None
            assert member.awaiting_sync is None
            self._count(member.protocols, -1)
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def replace_static(self, successor: ClassicGroupMember) -> None:
        """Replace a static member with its next incarnation. The rebalance in progress writes the record."""
        assert successor.group_instance_id is not None
        old_id = self.static_members[successor.group_instance_id]
        old = self.members.pop(old_id)
        assert old.awaiting_join is None
        assert old.awaiting_sync is None
        self._count(old.protocols, -1)
        self.members[successor.member_id] = successor
        self._count(successor.protocols, 1)
        self.static_members[successor.group_instance_id] = successor.member_id
        self.pending_sync.pop(old_id, None)
        if self.leader_id == old_id:
            self.leader_id = successor.member_id

    def update_protocols(self, member: ClassicGroupMember, protocols: tuple[MemberProtocol, ...]) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ClassicGroupMember:
        """The member of a request. Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if a successor replaced
        it."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    @property
    def all_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        return max([m.rebalance_timeout_ms for m in self.members.values()], default=0)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it waits in JoinGroup, otherwise take the first member that does. False: none
        does."""
        leader = None if self.leader_id is None else self.members[self.leader_id]
        if leader is None:
            return False
        if leader.awaiting_join is None:
            joined = next((m for m in self.members.values() if m.awaiting_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True

    def _replace_members(self, members: Iterable[ClassicGroupMember]) -> Paced[None]:
        self.members = {m.member_id: m for m in members}
        self.static_members = {}
        self._supporters = {}
        for member in self.members.values():
            if member.group_instance_id is not None:
                self.static_members[member.group_instance_id] = member.member_id
            self._count(member.protocols, 1)
            yield FEW + len(member.protocols)

    # --- protocols ------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: tuple[MemberProtocol, ...]) -> bool:
        """Whether a member with these protocols can join: all members must have one protocol in common."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        everyone = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supporters.get(p.name, 0) == everyone for p in protocols
        )

    def select_protocol(self, members: Iterable[ClassicGroupMember] | None = None) -> Paced[str]:
        """The protocol with the most votes: each member votes for its first one that all members support."""
        voters = list(self.members.values() if members is None else members)
        common = frozenset([protocol.name for protocol in voters[0].protocols])
        for member in voters:
            common &= frozenset([protocol.name for protocol in member.protocols])
            yield 1 + len(member.protocols) // FEW
        votes: dict[str, int] = {}
        for member in voters:
            choice = member.vote(common)
            votes[choice] = votes.get(choice, 0) + 1
            yield 2 * FEW
        return max(votes, key=lambda name: votes[name])

    def _count(self, protocols: tuple[MemberProtocol, ...], step: int) -> None:
        for name, _ in protocols:
            self._supporters[name] = self._supporters.get(name, 0) + step

    # --- generations ----------------------------------------------------------------------------------

    def transition(self, state: GroupState, now_ms: int) -> None:
        assert may_move(self.state, state), f"group {self.group_id}: {self.state.value} to {state.value}"
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    def begin_generation(self, now_ms: int) -> Paced[None]:
        """All members have joined: start the next generation, select a protocol, wait for the leader's
        assignment."""
        self.generation_id += 1
        self.protocol_name = yield from self.select_protocol()
        self.topics = yield from self._subscribed_topics()
        self.transition(GroupState.COMPLETING_REBALANCE, now_ms)
        self.pending_sync = dict.fromkeys(self.members)

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def subscribes_to(self, topic: str) -> bool:
        if self.topics is None:
            return self.uses_consumer_protocol
        return topic in self.topics

    def _subscribed_topics(self) -> Paced[frozenset[str] | None]:
        if not self.uses_consumer_protocol:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                found = subscribed_topics(member.metadata(self.protocol_name))
            except ValueError:
                return None
            topics.update(found)
            yield 2 * FEW + 2 * len(found)
        return frozenset(topics)
