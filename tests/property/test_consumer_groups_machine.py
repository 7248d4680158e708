"""Consumer groups under random events, compared with the partitions that their clients own: members join,
leave, stop heartbeats, are slow and return; topics are created, grow and are deleted; the log is loaded again
in between.

A client reads its assigned partitions, and those to revoke until it reports that it has. No two clients ever
read one partition, epochs never go back, a replay of the log always gives the same state, and in the end
everything is assigned.
"""

import uuid

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.core.errors import ErrorCode, KafkaError
from tests.unit.coordinators.groups.consumers import ConsumerHarness, FakeConsumer

TOPICS = ["t-1", "t-2", "u"]
REGEXES = ["t-.*", "u|t-1"]
INSTANCES = ["i", "j"]
SESSION_MS, REBALANCE_MS = 45_000, 10_000

Partition = tuple[uuid.UUID, int]


class Client(FakeConsumer):
    """Holds partitions for as long as it likes, within its timeouts."""

    heard_ms = 0

    def __init__(self, h: ConsumerHarness, name: str, topics: tuple[str, ...], **fields: object) -> None:
        super().__init__(h, "g", name, topics, dict(fields))
        self.working: set[Partition] = set()

    @property
    def told(self) -> set[Partition]:
        return {(topic, p) for topic, numbers in self.assigned.items() for p in numbers}

    @property
    def owned(self) -> dict[uuid.UUID, frozenset[int]]:
        owned: dict[uuid.UUID, set[int]] = {}
        for topic, partition in self.working:
            owned.setdefault(topic, set()).add(partition)
        return {topic: frozenset(numbers) for topic, numbers in owned.items()}

    def hear(self) -> None:
        """Begin with what is new; what is to be given up is kept until `let_go`."""
        self.heard_ms = self.h.now.steady_ms
        self.working |= self.told

    def let_go(self) -> None:
        self.working &= self.told

    def drop_all(self) -> None:
        self.working.clear()
        self.assigned = {}


class ConsumerGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.h = ConsumerHarness()
        self.clients: dict[str, Client] = {}
        self.names = 0
        self.epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}
        for topic in TOPICS[:2]:
            self.h.topic(topic, 2)

    def group(self) -> ConsumerGroup | None:
        group = self.h.shard.groups.get("g")
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    def pick(self, data: st.DataObject) -> Client:
        return self.clients[data.draw(st.sampled_from(sorted(self.clients)))]

    # --- members --------------------------------------------------------------------------------------

    @rule(
        topics=st.lists(st.sampled_from(TOPICS), unique=True, max_size=3),
        regex=st.sampled_from([None, None, *REGEXES]),
        assignor=st.sampled_from([None, "uniform", "range"]),
        instance=st.sampled_from([None, None, *INSTANCES]),
    )
    def join(self, topics: list[str], regex: str | None, assignor: str | None, instance: str | None) -> None:
        self.names += 1
        fields = {"subscribed_topic_regex": regex, "server_assignor": assignor, "instance_id": instance}
        client = Client(self.h, f"m{self.names}", tuple(topics), **fields)
        group = self.group()
        known = None if group is None or instance is None else group.static_member(instance)
        try:
            client.join(rebalance_timeout_ms=REBALANCE_MS)
            code = ErrorCode.NONE
        except KafkaError as e:
            code = e.code
        is_free = known is None or known.member_epoch == -2
        assert code is (ErrorCode.NONE if is_free else ErrorCode.UNRELEASED_INSTANCE_ID)
        if not is_free:
            return
        self.clients[client.member_id] = client
        client.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), says_what_it_owns=st.booleans())
    def beat(self, data: st.DataObject, says_what_it_owns: bool) -> None:
        self.speak(self.pick(data), says_what_it_owns)

    def speak(self, client: Client, says_what_it_owns: bool = True) -> None:
        group = self.group()
        assert group is not None and client.member_id in group.members
        client.beat(owned=client.owned if says_what_it_owns else None)
        client.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def let_go_and_beat(self, data: st.DataObject) -> None:
        client = self.pick(data)
        client.let_go()
        self.speak(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def lose_an_answer_and_beat_again(self, data: st.DataObject) -> None:
        """The member still has the epoch from before, and has not begun with anything new."""
        client = self.pick(data)
        client.let_go()
        epoch, assigned = client.epoch, dict(client.assigned)
        client.beat(owned=client.owned)
        client.epoch, client.assigned = epoch, assigned
        client.beat(
            owned=client.owned, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=client.topics
        )
        client.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=st.lists(st.sampled_from(TOPICS), unique=True, max_size=3))
    def subscribe(self, data: st.DataObject, topics: list[str]) -> None:
        client = self.pick(data)
        client.topics = tuple(topics)
        client.beat(owned=client.owned, subscribed_topic_names=client.topics)
        client.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def rejoin_with_empty_hands(self, data: st.DataObject) -> None:
        client = self.pick(data)
        if "instance_id" in client.fields and client.fields["instance_id"] is not None:
            return
        client.drop_all()
        client.join(rebalance_timeout_ms=REBALANCE_MS)
        client.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = self.clients.pop(self.pick(data).member_id)
        client.leave()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave_for_a_while(self, data: st.DataObject) -> None:
        client = self.pick(data)
        if client.fields.get("instance_id") is not None:
            del self.clients[client.member_id]
            client.leave(-2)

    # --- circumstances --------------------------------------------------------------------------------

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 2))
    def create_or_grow(self, topic: str, more: int) -> None:
        known = self.h.image.topics_by_name.get(topic)
        self.h.topic(topic, more + (0 if known is None else len(known.partitions)))

    @rule(topic=st.sampled_from(TOPICS))
    def delete_topic(self, topic: str) -> None:
        if topic in self.h.image.topics_by_name:
            self.h.topic(topic, 0)

    @rule(ms=st.sampled_from([100, 4_000, 10_001, 46_000]))
    def wait(self, ms: int) -> None:
        """Whoever was silent for a session, or did not let go in time, is out of the group and knows it."""
        self.h.advance(ms)
        group = self.group()
        for name in list(self.clients):
            if group is None or name not in group.members:
                client = self.clients.pop(name)
                assert self.h.now.steady_ms - client.heard_ms >= SESSION_MS or client.working - client.told, (
                    "fenced without reason"
                )

    @rule()
    def reload(self) -> None:
        self.h.reload()
        self.member_epochs.clear()

    # --- what holds -----------------------------------------------------------------------------------

    @invariant()
    def no_partition_is_worked_on_twice(self) -> None:
        seen: set[Partition] = set()
        for client in self.clients.values():
            assert not seen & client.working
            seen |= client.working

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.group()
        if group is None:
            return
        now = (group.group_epoch, group.assignment_epoch)
        assert now[0] >= self.epochs[0] and now[1] >= self.epochs[1]
        self.epochs = now
        for member in group.members.values():
            if member.member_epoch > 0:
                assert member.member_epoch >= self.member_epochs.get(member.member_id, 0)
                self.member_epochs[member.member_id] = member.member_epoch

    @invariant()
    def the_log_tells_the_same_story(self) -> None:
        self.h.check_reload()

    def teardown(self) -> None:
        """In the end every partition that somebody subscribes to has exactly one owner."""
        group = self.group()
        if group is None or not self.clients:
            return
        for _ in range(3):  # regular expressions are resolved every ten seconds at most
            self.h.advance(10_001)
            for name in list(self.clients):
                if name not in group.members:
                    del self.clients[name]
            for _ in range(4):
                for client in self.clients.values():
                    client.let_go()
                    self.speak(client)
                    client.let_go()
        group = self.group()
        assert group is not None
        wanted = {
            (topic.id, partition)
            for name, topic in self.h.image.topics_by_name.items()
            if name in group.subscribed_topics
            for partition in topic.partitions
        }
        away = {m.member_id for m in group.members.values() if m.member_epoch < 0}
        if away:
            return  # a static member keeps its own until it is back or its session ends
        held = [partition for client in self.clients.values() for partition in client.working]
        if self.clients:
            assert set(held) == wanted and len(held) == len(wanted)
            assert group.state == "Stable"


TestConsumerGroups = ConsumerGroups.TestCase
TestConsumerGroups.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
