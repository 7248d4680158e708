"""One group shard under random members, commits, timeouts, failing appends and reloads.

Two generations never both commit, committed offsets move by commits only, every request is answered at most
once, and replaying the log gives exactly the live state.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.replies import JoinGroupResponse
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID
from odradek.runtime.slices import at_once
from tests.unit.coordinators.groups.harness import Harness, replayed, subscription

GROUPS = ("g", "h")
INSTANCES = (None, None, "i", "j")
PROTOCOLS = (
    (c.MemberProtocol("range", subscription("t")),),
    (c.MemberProtocol("range", subscription("t", "u")), c.MemberProtocol("sticky", b"s")),
    (c.MemberProtocol("sticky", b"s"), c.MemberProtocol("range", subscription("u"))),
)

groups = st.sampled_from(("g", "g", "g", "h"))
pick = st.integers(0, 1_000)
rarely = st.integers(0, 11).map(lambda n: n == 11)


class GroupMachine(RuleBasedStateMachine):
    """Clients remember what they were told, also when it is long out of date."""

    @initialize(delay_ms=st.sampled_from([0, 3_000]), max_size=st.sampled_from([2, 100]))
    def start(self, delay_ms: int, max_size: int) -> None:
        self.h = Harness(initial_rebalance_delay_ms=delay_ms, max_size=max_size, offsets_retention_ms=100_000)
        self.identities: list[tuple[str, str, str | None, int]] = []  # group, member, instance, generation
        self.waiting: dict[int, tuple[str, str | None]] = {}  # joins by ticket
        self.parked: dict[int, None] = {}  # joins and syncs that wait
        self.committed: dict[tuple[str, int], int] = {}
        self.newest: dict[str, int] = {}  # the newest generation that committed
        self.next_offset = 0

    # --- what happens ---------------------------------------------------------------------------------

    def _remember(self) -> None:
        for ticket, (group_id, instance) in list(self.waiting.items()):
            answer = self.h.answers.get(ticket)
            if answer is not None:
                del self.waiting[ticket]
                self._learn(group_id, instance, answer)

    def _learn(self, group_id: str, instance: str | None, answer: JoinGroupResponse) -> None:
        if answer.member_id:
            self.identities.append((group_id, answer.member_id, instance, answer.generation_id))

    def _join(self, group_id: str, instance: str | None, fields: dict[str, Any]) -> None:
        try:
            answer = self.h.join(group_id, group_instance_id=instance, **fields)
        except KafkaError:
            return
        if answer is None:
            self.waiting[self.h.tickets] = (group_id, instance)
            self.parked[self.h.tickets] = None
        else:
            self._learn(group_id, instance, answer)
        self._remember()

    @rule(
        group_id=groups,
        instance=st.sampled_from(INSTANCES),
        protocols=st.sampled_from(PROTOCOLS),
        known_required=st.booleans(),
        can_skip=st.booleans(),
        session_ms=st.sampled_from([10_000, 30_000]),
    )
    def join(
        self,
        group_id: str,
        instance: str | None,
        protocols: Any,
        known_required: bool,
        can_skip: bool,
        session_ms: int,
    ) -> None:
        fields = {
            "protocols": protocols,
            "known_member_required": known_required,
            "can_skip_assignment": can_skip,
            "session_timeout_ms": session_ms,
        }
        self._join(group_id, instance, fields)

    def _identity(self, which: int) -> tuple[str, str, str | None, int]:
        # The latest are the likeliest to matter.
        return self.identities[-1 - which % min(len(self.identities), 6)]

    @precondition(lambda self: self.identities)
    @rule(which=pick, protocols=st.sampled_from(PROTOCOLS))
    def rejoin(self, which: int, protocols: Any) -> None:
        group_id, member_id, instance, _ = self._identity(which)
        self._join(group_id, instance, {"member_id": member_id, "protocols": protocols})

    @precondition(lambda self: self.identities)
    @rule(which=pick)
    def sync(self, which: int) -> None:
        group_id, member_id, instance, generation_id = self._identity(which)
        group = self.h.shard.groups.get(group_id)
        members = list(group.members) if isinstance(group, ClassicGroup) else []
        given = [(m, f"{m} of {generation_id}".encode()) for m in members[:-1] or members]
        self._sync(group_id, member_id, instance, generation_id, given)

    def _sync(
        self, group_id: str, member_id: str, instance: str | None, generation_id: int, given: list[Any]
    ) -> None:
        fields = {"group_instance_id": instance, "protocol_name": None, "assignments": given}
        if self.h.sync(member_id, generation_id, group_id, **fields) is None:
            self.parked[self.h.tickets] = None

    @rule(group_id=groups)
    def a_generation_begins(self, group_id: str) -> None:
        self._rejoin(group_id, fully=False)

    @rule(group_id=groups)
    def a_generation_becomes_stable(self, group_id: str) -> None:
        self._rejoin(group_id, fully=True)

    def _rejoin(self, group_id: str, fully: bool) -> None:
        """Everybody does what a good client does, so that generations, and stable ones, are common."""
        group = self.h.shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return
        for member_id in list(group.members):
            member = group.members.get(member_id)
            if member is not None and member.awaiting_join is None:
                fields = {"member_id": member_id, "protocols": member.protocols}
                self._join(group_id, member.group_instance_id, fields)
        self.h.advance(self.h.config.initial_rebalance_delay_ms)
        self._remember()
        for member_id in [*group.members] if fully else ():
            if member_id in group.members and group.members[member_id].awaiting_sync is None:
                given = [(m, b"assigned") for m in group.members]
                self._sync(group_id, member_id, None, group.generation_id, given)

    @precondition(lambda self: self.identities)
    @rule(which=pick)
    def heartbeat(self, which: int) -> None:
        group_id, member_id, instance, generation_id = self._identity(which)
        self.h.heartbeat(member_id, generation_id, group_id, instance)

    @precondition(lambda self: self.identities)
    @rule(which=pick, by_instance=st.booleans())
    def leave(self, which: int, by_instance: bool) -> None:
        group_id, member_id, instance, _ = self._identity(which)
        leaving = c.LeavingMember("" if by_instance else member_id, instance)
        self.h.code(c.LeaveGroup(group_id, [leaving]))
        self._remember()

    @precondition(lambda self: self.identities)
    @rule(which=pick, partition=st.integers(0, 1))
    def commit(self, which: int, partition: int) -> None:
        group_id, member_id, instance, generation_id = self._identity(which)
        self._commit(group_id, member_id, instance, generation_id, partition)

    @rule(group_id=groups, partition=st.integers(0, 1))
    def commit_without_group(self, group_id: str, partition: int) -> None:
        group = self.h.shard.groups.get(group_id)
        is_empty = group is None or not isinstance(group, ClassicGroup) or group.state is GroupState.EMPTY
        accepted = self._commit(group_id, "", None, -1, partition)
        assert not accepted or is_empty

    def _commit(
        self, group_id: str, member_id: str, instance: str | None, generation_id: int, partition: int
    ) -> bool:
        self.next_offset += 1
        code = self.h.commit(
            self.next_offset, member_id, generation_id, group_id, partition=partition, instance=instance
        )
        if code != ErrorCode.NONE:
            return False
        self.committed[group_id, partition] = self.next_offset
        if generation_id >= 0:
            assert generation_id >= self.newest.get(group_id, 0), (
                "an older generation committed after a newer"
            )
            self.newest[group_id] = generation_id
        return True

    @rule(ms=st.sampled_from([1, 1_000, 9_000, 31_000, 61_000, 301_000]))
    def time_passes(self, ms: int) -> None:
        self.h.advance(ms)
        self._remember()

    @rule()
    def the_coordinator_moves(self) -> None:
        """Whatever waits is lost with the shard."""
        self.h.append_error = None
        self.waiting.clear()
        self.parked.clear()
        self.h.answers.clear()
        self.h.reload()

    @rule(fails=rarely)
    def the_log_fails_or_recovers(self, fails: bool) -> None:
        self.h.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS) if fails else None

    @rule(what=st.integers(0, 5), group_id=groups)
    def somebody_cleans_up(self, what: int, group_id: str) -> None:
        if what == 0:
            self._delete_group(group_id)
        elif what == 1:
            self.h.code(c.DeleteOffsets(group_id, [("t", [0])]))
            self._forget({})
        else:
            before = {group_id: self.h.shard.groups.get(group_id) for group_id in GROUPS}
            self.h.code(c.ExpireOffsets())
            self._forget(before)

    def _delete_group(self, group_id: str) -> None:
        group = self.h.shard.groups.get(group_id)
        code = self.h.code(c.DeleteGroup(group_id))
        if isinstance(group, ClassicGroup) and group.members:
            assert code == ErrorCode.NON_EMPTY_GROUP
        self._forget({group_id: group})

    def _forget(self, before: dict[str, Any]) -> None:
        """Tombstones in the log are the only other way in which an offset may change."""
        for key, value in self.h.log[-20:]:
            if value is None and hasattr(key, "topic") and not self._is_live(key.group, key.partition):
                self.committed.pop((key.group, key.partition), None)
        for group_id, group in before.items():
            if group is not None and group_id not in self.h.shard.groups:
                self.newest.pop(group_id, None)

    def _is_live(self, group_id: str, partition: int) -> bool:
        return self.h.shard.offsets.get(group_id, "t", partition) is not None

    # --- what must always hold ------------------------------------------------------------------------

    @invariant()
    def committed_offsets_are_those_of_the_last_commits(self) -> None:
        for group_id in GROUPS:
            for partition in (0, 1):
                wanted = [c.WantedTopic("t", ZERO_UUID, [partition])]
                result = at_once(self.h.shard.handle(c.FetchOffsets(group_id, wanted, False), 0, self.h.now))
                found = result.response[0].partitions[0].committed_offset
                assert found == self.committed.get((group_id, partition), -1)

    @invariant()
    def replaying_the_log_gives_the_live_state(self) -> None:
        live, copy = self.h.shard, replayed(self.h.log, self.h.config)
        assert list(copy.groups) == list(live.groups)
        for group_id, group in live.groups.items():
            twin = copy.groups[group_id]
            assert isinstance(group, ClassicGroup)
            assert isinstance(twin, ClassicGroup)
            assert twin.persisted == group.persisted
            assert copy.offsets.of_group(group_id) == live.offsets.of_group(group_id)
            if group.state in (GroupState.STABLE, GroupState.EMPTY):
                assert stable_state(twin) == stable_state(group)

    @invariant()
    def timers_and_waits_belong_to_somebody(self) -> None:
        for key in self.h.shard.timers._keys:
            group = self.h.shard.groups[key.group_id]
            assert isinstance(group, ClassicGroup)
            if key.member_id is not None:
                assert key.member_id in group.members or key.member_id in group.pending_join
        held = []
        for group in self.h.shard.groups.values():
            assert isinstance(group, ClassicGroup)
            held += [t for m in group.members.values() for t in (m.awaiting_join, m.awaiting_sync) if t]
            waiting = [m for m in group.members.values() if m.awaiting_join is not None]
            assert len(waiting) == group.awaiting_join_count
            if group.state is not GroupState.PREPARING_REBALANCE:
                assert not waiting
            if group.state is not GroupState.COMPLETING_REBALANCE:
                assert all(m.awaiting_sync is None for m in group.members.values())
        assert sorted(held) == [ticket for ticket in self.parked if ticket not in self.h.answers]


def stable_state(group: ClassicGroup) -> tuple[Any, ...]:
    members = [
        (
            m.member_id,
            m.group_instance_id,
            m.metadata(group.protocol_name),
            m.assignment,
            m.session_timeout_ms,
        )
        for m in group.members.values()
    ]
    return (
        group.state,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.topics,
        members,
    )


GroupMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestGroupsHoldTheirPromises = GroupMachine.TestCase
