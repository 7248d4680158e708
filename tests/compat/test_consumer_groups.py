"""Consumer groups (KIP-848) step by step and through librdkafka: the same on Apache Kafka and on Odradek."""

import time

import confluent_kafka
import pytest

from odradek.wire import consumer_protocol as wire
from tests.support.consumer import Consumer, beat_until_assigned, prepare_group
from tests.support.group import OFFSET_FETCH, Member
from tests.support.raw import Connection
from tests.support.topics import create_topic

CREATE_PARTITIONS, DELETE_TOPICS, LIST_GROUPS, DESCRIBE_GROUPS = 37, 20, 16, 15
UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS = 25, 22, 27
STALE_MEMBER_EPOCH, INVALID_REGULAR_EXPRESSION, GROUP_ID_NOT_FOUND = 113, 128, 69
TIMEOUT_S = 30


@pytest.fixture
def topic(make_topic):
    return make_topic(partitions=2)


@pytest.fixture
def group(bootstrap, unique):
    name = unique("group")
    prepare_group(bootstrap, name)
    return name


def until(condition, timeout_s=TIMEOUT_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def subscription(*topics, owned=None):
    rows = [wire.MemberPartitions(topic=t, partitions=tuple(p)) for t, p in (owned or {}).items()]
    return wire.encode_subscription(wire.Subscription(topics=topics, owned_partitions=rows))


class ClassicMember(Member):
    """A cooperative classic consumer: it says what it owns when it joins."""

    def __init__(self, bootstrap, group, topic, *, instance_id=None, member_id=""):
        super().__init__(bootstrap, group, instance_id=instance_id)
        self.member_id, self.topic, self.owned = member_id, topic, []

    def join_values(self, **over):
        owned = {self.topic: self.owned} if self.owned else {}
        protocols = [{"name": "range", "metadata": subscription(self.topic, owned=owned)}]
        return super().join_values(**{"protocols": protocols, **over})

    def take(self, assignments=None):
        """Sync, and own what comes."""
        answer = self.sync(assignments)
        if answer.error_code == 0:
            found = wire.decode_assignment(bytes(answer.assignment))
            self.owned = sorted(p for row in found.assigned_partitions for p in row.partitions)
        return int(answer.error_code)

    def follow(self):
        """A heartbeat, and what a client does when it is told to join again."""
        if self.heartbeat() == REBALANCE_IN_PROGRESS:
            assert self.join().error_code == 0
            self.take()


def all_of(topic, partitions):
    row = wire.MemberPartitions(topic=topic, partitions=tuple(partitions))
    return wire.encode_assignment(wire.Assignment(assigned_partitions=[row]))


def classic_group(bootstrap, group, topic, **options):
    """One classic member with both partitions."""
    member = ClassicMember(bootstrap, group, topic, **options)
    assert member.join().error_code == 0
    assert member.take({member.member_id: all_of(topic, [0, 1])}) == 0
    assert member.owned == [0, 1]
    return member


def state_of(bootstrap, group):
    """State and type, as groups are listed."""
    with Connection(bootstrap) as connection:
        rows = connection.call(LIST_GROUPS, 5, {"states_filter": [], "types_filter": []}).groups
        return next(((r.group_state, r.group_type) for r in rows if r.group_id == group), None)


# --- one protocol ---------------------------------------------------------------------------------------


def test_a_group_follows_its_topics(bootstrap, unique, topic, group):
    later = unique("topic")
    with Consumer(bootstrap, group, "member-a", [topic, later]) as a:
        a.join()
        assert (a.epoch, a.partitions) == (2, [0, 1])
        create_topic(bootstrap, later, 1)
        beat_until_assigned(a, expected=3)
        assert a.epoch == 3
        with Connection(bootstrap) as connection:
            rows = [{"name": later, "count": 3, "assignments": None}]
            connection.call(CREATE_PARTITIONS, 3, {"topics": rows, "timeout": 30_000, "validate_only": False})
            beat_until_assigned(a, expected=5)
            assert a.epoch == 4
            connection.call(
                DELETE_TOPICS, 6, {"topics": [{"name": later, "topic_id": None}], "timeout": 30_000}
            )
        beat_until_assigned(a, expected=2)
        a.beat()
        assert (a.epoch, a.partitions) == (5, [0, 1])


def test_a_regular_expression_matches_what_is_there_and_what_comes(bootstrap, unique, topic, group):
    prefix = unique("re")
    create_topic(bootstrap, f"{prefix}-1", 1)
    with Consumer(bootstrap, group, "member-a") as a:
        fields = {"subscribed_topic_names": None}
        assert a.join(subscribed_topic_regex="[", **fields).error_code == INVALID_REGULAR_EXPRESSION
        a.join(subscribed_topic_regex=f"{prefix}-.*", **fields)
        assert (a.epoch, a.partitions) == (1, [])
        beat_until_assigned(a, expected=1)
        assert a.epoch == 2
        create_topic(bootstrap, f"{prefix}-2", 2)
        beat_until_assigned(a, expected=3)
        assert a.epoch == 3


def fetch_code(connection, group, member_id, epoch):
    values = {"group_id": group, "member_id": member_id, "member_epoch": epoch, "topics": None}
    answer = connection.call(OFFSET_FETCH, 9, {"groups": [values], "require_stable": True})
    return int(answer.groups[0].error_code)


def test_offsets_belong_to_an_epoch(bootstrap, topic, group):
    a, b = (Consumer(bootstrap, group, name, [topic]) for name in ("member-a", "member-b"))
    with a, b, Member(bootstrap, group) as raw:

        def commit(member_id, epoch, **over):
            return raw.commit(topic, 1, member_id=member_id, generation_id_or_member_epoch=epoch, **over)

        a.join()
        assert commit("member-a", 2) == 0
        assert commit("member-a", 3) == STALE_MEMBER_EPOCH
        assert commit("member-a", 1) == STALE_MEMBER_EPOCH
        assert commit("member-x", 2) == UNKNOWN_MEMBER_ID
        assert commit("", -1) == UNKNOWN_MEMBER_ID
        b.join()
        beat_until_assigned(a, b, expected=2)
        assert (a.epoch, a.partitions, b.partitions) == (3, [0], [1])
        assert commit("member-a", 2) == 0, "it has had the partition since epoch 2"
        assert commit("member-b", 2) == STALE_MEMBER_EPOCH
        assert fetch_code(raw.connection, group, "member-a", 3) == 0
        assert fetch_code(raw.connection, group, None, -1) == 0
        assert fetch_code(raw.connection, group, "member-a", 2) == STALE_MEMBER_EPOCH
        assert fetch_code(raw.connection, group, "member-x", 3) == UNKNOWN_MEMBER_ID
        a.leave()
        b.leave()
        assert commit("", -1) == 0


# --- both protocols --------------------------------------------------------------------------------------


def test_a_classic_group_is_upgraded_and_downgraded_while_it_runs(bootstrap, topic, group):
    with classic_group(bootstrap, group, topic) as old, Consumer(bootstrap, group, "new", [topic]) as new:
        generation = old.generation
        new.join()
        assert (new.epoch, new.partitions) == (generation + 1, [])
        assert state_of(bootstrap, group) == ("Reconciling", "consumer")
        assert old.heartbeat() == REBALANCE_IN_PROGRESS
        joined = old.join()
        assert (joined.error_code, joined.leader, joined.generation_id) == (0, "", generation)
        assert old.take() == 0
        for _ in range(3):
            old.follow()
            new.beat()
        assert old.generation == generation + 1
        assert sorted(old.owned + new.partitions) == [0, 1]
        assert old.commit(topic, 5, generation_id_or_member_epoch=old.generation) == 0
        assert old.commit(topic, 5, generation_id_or_member_epoch=99) == ILLEGAL_GENERATION
        new.leave()
        assert old.heartbeat() == REBALANCE_IN_PROGRESS
        assert state_of(bootstrap, group) == ("PreparingRebalance", "classic")
        joined = old.join()
        assert (joined.error_code, joined.leader) == (0, old.member_id)
        assert old.take({old.member_id: all_of(topic, [0, 1])}) == 0
        assert state_of(bootstrap, group) == ("Stable", "classic")


def test_a_classic_member_joins_a_consumer_group(bootstrap, topic, group):
    with Consumer(bootstrap, group, "new", [topic]) as new:
        new.join()
        with ClassicMember(bootstrap, group, topic) as old:
            assert old.join().error_code == 0
            assert old.take() == 0
            assert old.owned == []
            for _ in range(4):
                new.beat()
                old.follow()
            assert (len(new.partitions), len(old.owned)) == (1, 1)
            assert old.heartbeat(generation_id=99) == ILLEGAL_GENERATION
            assert old.heartbeat(member_id="new") == UNKNOWN_MEMBER_ID
            assert old.heartbeat(member_id="nobody") == UNKNOWN_MEMBER_ID
            answer = old.leave()
            assert [int(m.error_code) for m in answer.members] == [0]
        beat_until_assigned(new, expected=2)


def test_a_static_member_changes_its_protocol_and_keeps_its_place(bootstrap, topic, group):
    with Consumer(bootstrap, group, "new", [topic], instance_id="instance") as new:
        new.join()
        epoch = new.epoch
        new.leave(-2)
        with ClassicMember(bootstrap, group, topic, instance_id="instance") as old:
            joined = old.join()
            assert (joined.error_code, joined.generation_id) == (0, epoch)
            assert state_of(bootstrap, group) == ("Stable", "classic")
            assert old.take() == 0
            assert old.owned == [0, 1]
            again = Consumer(bootstrap, group, "again", [topic], instance_id="instance")
            with again:
                again.join()
                assert (again.epoch, again.partitions) == (epoch, [0, 1])
                assert state_of(bootstrap, group) == ("Stable", "consumer")


def test_a_group_that_uses_another_embedded_protocol_is_not_upgraded(bootstrap, topic, group):
    with Member(bootstrap, group) as other, Consumer(bootstrap, group, "new", [topic]) as new:
        other.join(protocol_type="connect")
        assert other.sync({other.member_id: b""}, protocol_type="connect").error_code == 0
        answer = new.join()
        assert answer.error_code == GROUP_ID_NOT_FOUND
        assert answer.error_message


# --- librdkafka -------------------------------------------------------------------------------------------


def rdkafka(bootstrap, group, topic, protocol):
    options = {} if protocol == "consumer" else {"partition.assignment.strategy": "cooperative-sticky"}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **options,
        }
    )
    consumer.subscribe([topic])
    return consumer


def produce(bootstrap, topic, partitions, count):
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for i in range(count):
        producer.produce(topic, str(i).encode(), partition=i % partitions)
    assert producer.flush(20) == 0


def drain(consumers, seen, condition, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, [
            [tp.partition for tp in consumer.assignment()] for consumer in consumers
        ]
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None:
                assert message.error() is None, message.error()
                seen.append(message.value())


@pytest.mark.parametrize("protocols", [("consumer", "consumer"), ("classic", "consumer")])
def test_librdkafka_members_share_a_topic_whatever_they_speak(bootstrap, make_topic, group, protocols):
    topic = make_topic(partitions=4)
    produce(bootstrap, topic, 4, 40)
    seen = []
    first = rdkafka(bootstrap, group, topic, protocols[0])
    drain([first], seen, lambda: len(seen) == 40)
    first.commit(asynchronous=False)
    second = rdkafka(bootstrap, group, topic, protocols[1])
    both = [first, second]
    drain(both, seen, lambda: all(len(consumer.assignment()) == 2 for consumer in both))
    produce(bootstrap, topic, 4, 20)
    drain(both, seen, lambda: len(seen) >= 60)
    assert sorted(seen[40:]) == sorted(str(i).encode() for i in range(20)), "each once, nothing again"
    first.commit(asynchronous=False)
    first.close()
    drain([second], seen, lambda: len(second.assignment()) == 4)
    second.close()
    assert state_of(bootstrap, group)[0] == "Empty"
