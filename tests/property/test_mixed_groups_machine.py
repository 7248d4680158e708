"""Members of both protocols join and leave one group, so that it is converted again and again.

Requests get only errors of the protocol, a replay of the log always gives the same state, no partition of a
consumer group has two members, and in the end every remaining member is served.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire import consumer_protocol as wire
from tests.unit.coordinators.groups.consumers import ConsumerHarness, FakeConsumer
from tests.unit.coordinators.groups.harness import replayed

TOPICS = ["t", "u"]
EXPECTED = {
    *(
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    ),
    *(ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNRELEASED_INSTANCE_ID),
    *(ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.STALE_MEMBER_EPOCH),
}
POLICIES = ["bidirectional", "bidirectional", "upgrade", "downgrade", "disabled"]


def attempt(action: Callable[[], Any]) -> Any:
    """The answer, or the code of an error that a client may be told."""
    try:
        return action()
    except KafkaError as e:
        code = e.code
    assert code in EXPECTED, code
    return code


class Classic:
    """A classic member that remembers what it was told, also when it is long out of date."""

    def __init__(self, name: str, instance: str | None, topics: list[str]) -> None:
        self.name, self.instance, self.topics = name, instance, topics
        self.member_id = "" if instance is not None else name
        self.generation = -1
        self.leads = False
        self.ticket: int | None = None
        self.owned: dict[str, tuple[int, ...]] = {}


class MixedGroups(RuleBasedStateMachine):
    @initialize(policy=st.sampled_from(POLICIES))
    def start(self, policy: str) -> None:
        self.h = ConsumerHarness(consumer_migration_policy=policy)
        self.modern: dict[str, FakeConsumer] = {}
        self.classic: dict[str, Classic] = {}
        self.names = 0
        self.h.topic("t", 3)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def ask(self, command: Any) -> Any:
        """The answer, or the error's code; None while it waits."""
        return attempt(lambda: self.h.handle(command))

    # --- the new protocol -----------------------------------------------------------------------------

    @rule(topics=st.lists(st.sampled_from(TOPICS), unique=True), instance=st.sampled_from([None, None, "i"]))
    def join_modern(self, topics: list[str], instance: str | None) -> None:
        member = self.h.member(self.name("new"), *topics, instance_id=instance)
        if attempt(member.join) is member:
            self.modern[member.member_id] = member

    @precondition(lambda self: self.modern)
    @rule(data=st.data(), speaks=st.booleans())
    def beat(self, data: st.DataObject, speaks: bool) -> None:
        member = self.modern[data.draw(st.sampled_from(sorted(self.modern)))]
        if isinstance(attempt(lambda: member.beat(**({} if speaks else {"owned": None}))), ErrorCode):
            del self.modern[member.member_id]

    @precondition(lambda self: self.modern)
    @rule(data=st.data(), for_good=st.booleans())
    def leave_modern(self, data: st.DataObject, for_good: bool) -> None:
        member = self.modern.pop(data.draw(st.sampled_from(sorted(self.modern))))
        epoch = -1 if for_good or member.fields.get("instance_id") is None else -2
        attempt(lambda: member.leave(epoch))

    # --- the old protocol -----------------------------------------------------------------------------

    @rule(
        topics=st.lists(st.sampled_from(TOPICS), unique=True, min_size=1),
        instance=st.sampled_from([None, None, "i"]),
    )
    def join_classic(self, topics: list[str], instance: str | None) -> None:
        member = Classic(self.name("old"), instance, topics)
        self.classic[member.name] = member
        self.send_join(member)

    def send_join(self, member: Classic) -> None:
        rows = [wire.MemberPartitions(topic=t, partitions=p) for t, p in member.owned.items()]
        subscription = wire.Subscription(topics=tuple(member.topics), owned_partitions=rows)
        answer = self.ask(
            self.h.join_command(
                member_id=member.member_id,
                group_instance_id=member.instance,
                protocols=(c.MemberProtocol("range", wire.encode_subscription(subscription)),),
                known_member_required=False,
            )
        )
        member.ticket = self.h.tickets if answer is None else None
        if answer is not None:
            self.hear_join(member, answer)

    def hear_join(self, member: Classic, answer: Any) -> None:
        code = answer if isinstance(answer, ErrorCode) else answer.error_code
        assert code in EXPECTED, code
        if code == ErrorCode.NONE:
            member.member_id, member.generation = answer.member_id, answer.generation_id
            member.leads = answer.leader == answer.member_id
            self.members = [m.member_id for m in answer.members]
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            member.member_id = ""

    @precondition(lambda self: self.classic)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """Take a late answer, else a heartbeat and what follows from it."""
        member = self.classic[data.draw(st.sampled_from(sorted(self.classic)))]
        if member.ticket is not None:
            answer = self.h.answers.get(member.ticket)
            if answer is None:
                return
            member.ticket = None
            self.hear_join(member, answer)
        if member.generation >= 0:
            self.sync(member)
        beat = self.ask(c.Heartbeat("g", member.member_id, member.instance, member.generation))
        code = beat if isinstance(beat, ErrorCode) else beat.error_code
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            member.member_id = ""
        if code != ErrorCode.NONE:
            self.send_join(member)

    def sync(self, member: Classic) -> None:
        assignments = []
        if member.leads:
            everything = wire.MemberPartitions(topic="t", partitions=(0, 1, 2))
            mine = wire.encode_assignment(wire.Assignment(assigned_partitions=[everything]))
            assignments = [(member.member_id, mine)]
        answer = self.ask(
            c.SyncGroup(
                group_id="g",
                member_id=member.member_id,
                group_instance_id=member.instance,
                generation_id=member.generation,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
            )
        )
        if answer is not None and not isinstance(answer, ErrorCode) and answer.error_code == ErrorCode.NONE:
            rows = wire.decode_assignment(answer.assignment).assigned_partitions
            member.owned = {row.topic: tuple(row.partitions) for row in rows}

    @precondition(lambda self: self.classic)
    @rule(data=st.data())
    def leave_classic(self, data: st.DataObject) -> None:
        member = self.classic.pop(data.draw(st.sampled_from(sorted(self.classic))))
        self.ask(c.LeaveGroup("g", [c.LeavingMember(member.member_id, member.instance)]))

    # --- circumstances --------------------------------------------------------------------------------

    @rule(topic=st.sampled_from(TOPICS), partitions=st.integers(0, 4))
    def change_topic(self, topic: str, partitions: int) -> None:
        known = self.h.image.topics_by_name.get(topic)
        if known is not None and 0 < partitions < len(known.partitions):
            return
        if known is not None or partitions:
            self.h.topic(topic, partitions)

    @rule(ms=st.sampled_from([100, 11_000, 46_000]))
    def wait(self, ms: int) -> None:
        self.h.advance(ms)

    @rule()
    def reload(self) -> None:
        self.h.reload()
        for member in self.classic.values():
            member.ticket = None

    # --- what holds -----------------------------------------------------------------------------------

    @invariant()
    def the_log_tells_the_same_story(self) -> None:
        self.h.check_reload()
        group = self.h.shard.groups.get("g")
        loaded = replayed(self.h.log, self.h.config, lambda: self.h.image).groups.get("g")
        assert type(loaded) is type(group)
        if isinstance(group, ClassicGroup) and group.state is GroupState.STABLE:
            assert isinstance(loaded, ClassicGroup)
            assert list(loaded.members) == list(group.members)

    @invariant()
    def timers_are_for_members_that_exist(self) -> None:
        group = self.h.shard.groups.get("g")
        if group is None:
            assert len(self.h.shard.timers) == 0
        elif isinstance(group, ConsumerGroup):
            assert len(self.h.shard.timers) <= 4 * len(group.members)

    def teardown(self) -> None:
        """Everybody falls silent: nothing is left but an empty group."""
        self.h.advance(3_600_000)
        group = self.h.shard.groups.get("g")
        assert group is None or not group.members


TestMixedGroups = MixedGroups.TestCase
TestMixedGroups.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
