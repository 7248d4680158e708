"""Consumer groups through the clients people use: joining, sharing, leaving, committing, resetting."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.compat.clients import CLIENTS, Sent

PARTITIONS = 4
RECORDS = 40
TIMEOUT_S = 30


@pytest.fixture
def filled(bootstrap, make_topic):
    """A topic of four partitions with ten records in each."""
    name = make_topic(partitions=PARTITIONS)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for i in range(RECORDS):
        producer.produce(name, str(i).encode(), partition=i % PARTITIONS)
    assert producer.flush(20) == 0
    return name


class ConfluentMember:
    def __init__(self, bootstrap, group, topic, **options):
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": options.pop("reset", "earliest"),
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 200,
                "topic.metadata.refresh.interval.ms": 500,
                **options,
            }
        )
        self.consumer.subscribe([topic])

    def poll(self):
        message = self.consumer.poll(0.2)
        if message is None:
            return []
        if message.error():
            raise confluent_kafka.KafkaException(message.error())
        return [(message.partition(), message.offset(), message.value())]

    def assignment(self):
        return {tp.partition for tp in self.consumer.assignment()}

    def commit(self):
        self.consumer.commit(asynchronous=False)

    def close(self):
        self.consumer.close()


class KafkaPythonMember:
    def __init__(self, bootstrap, group, topic, **options):
        self.consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset=options.pop("reset", "earliest"),
            enable_auto_commit=False,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=200,
            group_instance_id=options.pop("group.instance.id", None),
        )

    def poll(self):
        # Long enough to join in: a poll of this client that ends between the answer to its SyncGroup and its
        # taking it in forgets the assignment, beats no more and never joins again.
        batches = self.consumer.poll(3_000).values()
        return [(r.partition, r.offset, r.value) for batch in batches for r in batch]

    def assignment(self):
        return {tp.partition for tp in self.consumer.assignment()}

    def commit(self):
        self.consumer.commit()

    def close(self):
        self.consumer.close(autocommit=False)


class AiokafkaMember:
    """aiokafka on a loop and thread of its own, so that it beats while the test polls another member."""

    def __init__(self, bootstrap, group, topic, **options):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.run(self._start(bootstrap, group, topic, options))

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(TIMEOUT_S)

    async def _start(self, bootstrap, group, topic, options):
        self.consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset=options.pop("reset", "earliest"),
            enable_auto_commit=False,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=200,
            group_instance_id=options.pop("group.instance.id", None),
        )
        await self.consumer.start()

    def poll(self):
        batches = self.run(self.consumer.getmany(timeout_ms=200)).values()
        return [(r.partition, r.offset, r.value) for batch in batches for r in batch]

    def assignment(self):
        return {tp.partition for tp in self.consumer.assignment()}

    def commit(self):
        self.run(self.consumer.commit())

    def close(self):
        self.run(self.consumer.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


MEMBERS = {"confluent-kafka": ConfluentMember, "kafka-python": KafkaPythonMember, "aiokafka": AiokafkaMember}


@pytest.fixture(params=MEMBERS.values(), ids=MEMBERS.keys())
def join(request, bootstrap):
    """Make members of the client under test; closed in the end."""
    members = []

    def make(group, topic, **options):
        members.append(request.param(bootstrap, group, topic, **options))
        return members[-1]

    yield make
    for member in members:
        member.close()


def poll_until(condition, *members):
    """Poll all members, at the same time, until the condition holds; what they read."""
    got, deadline = [], time.monotonic() + TIMEOUT_S
    with ThreadPoolExecutor(len(members)) as threads:
        while not condition(got):
            assigned = [member.assignment() for member in members]
            assert time.monotonic() < deadline, f"read {len(got)}, assigned {assigned}"
            for polled in threads.map(lambda member: member.poll(), members):
                got += polled
    return got


def test_a_group_of_one_reads_everything_and_resumes_where_it_committed(bootstrap, filled, unique, join):
    group = unique("group")
    first = join(group, filled)
    got = poll_until(lambda got: len(got) >= RECORDS, first)
    assert sorted(int(v) for _, _, v in got) == list(range(RECORDS))
    assert first.assignment() == set(range(PARTITIONS))
    first.commit()
    CLIENTS[0].produce(bootstrap, filled, [Sent(b"100"), Sent(b"101")])
    second = join(unique("other"), filled)
    poll_until(lambda got: len(got) >= RECORDS + 2, second)
    got = poll_until(lambda got: len(got) >= 2, first)
    assert [v for _, _, v in got] == [b"100", b"101"]


def test_a_successor_starts_at_the_committed_offsets(bootstrap, filled, unique, join, request):
    group = unique("group")
    first = join(group, filled)
    poll_until(lambda got: len(got) >= RECORDS, first)
    first.commit()
    CLIENTS[0].produce(bootstrap, filled, [Sent(b"new")])
    second = join(group, filled)
    got = poll_until(lambda got: len(got) >= 1, first, second)
    assert [v for _, _, v in got] == [b"new"]


def test_two_members_share_the_partitions_and_one_takes_them_back(filled, unique, join, bootstrap):
    group = unique("group")
    first = join(group, filled)
    poll_until(lambda _: first.assignment() == set(range(PARTITIONS)), first)
    second = join(group, filled)

    def shared(_):
        mine, theirs = first.assignment(), second.assignment()
        return len(mine) == len(theirs) == PARTITIONS // 2 and mine | theirs == set(range(PARTITIONS))

    poll_until(shared, first, second)
    second.close()
    second.close = lambda: None
    poll_until(lambda _: first.assignment() == set(range(PARTITIONS)), first)


def test_auto_offset_reset_latest_skips_what_was_there(bootstrap, filled, unique, join):
    member = join(unique("group"), filled, reset="latest")
    poll_until(lambda _: member.assignment() == set(range(PARTITIONS)), member)
    produced = []

    def arrived(got):
        # The position is looked up some time after the assignment: keep sending until one arrives.
        CLIENTS[0].produce(bootstrap, filled, [Sent(b"after")])
        produced.append(1)
        return bool(got)

    got = poll_until(arrived, member)
    assert {v for _, _, v in got} == {b"after"}


def test_static_members_keep_their_partitions_over_a_restart(filled, unique, join):
    group = unique("group")
    first = join(group, filled, **{"group.instance.id": "a"})
    second = join(group, filled, **{"group.instance.id": "b"})
    poll_until(lambda _: len(first.assignment()) == len(second.assignment()) == 2, first, second)
    kept, others = first.assignment(), second.assignment()
    first.close()
    first.close = lambda: None
    again = join(group, filled, **{"group.instance.id": "a"})
    poll_until(lambda _: again.assignment() == kept, again, second)
    assert second.assignment() == others


def test_confluent_kafka_commits_seeks_and_reads_committed(bootstrap, filled, unique):
    group = unique("group")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    tp = confluent_kafka.TopicPartition
    try:
        consumer.commit(offsets=[tp(filled, 0, 7), tp(filled, 1, 3)], asynchronous=False)
        found = consumer.committed([tp(filled, p) for p in range(3)], 20)
        assert [t.offset for t in found] == [7, 3, confluent_kafka.OFFSET_INVALID]
        consumer.assign([tp(filled, 0, 7)])
        assert consumer.poll(20).offset() == 7
        consumer.seek(tp(filled, 0, 2))
        deadline = time.monotonic() + 20
        while (message := consumer.poll(1)) is None or message.offset() > 6:
            assert time.monotonic() < deadline
        assert message.offset() == 2
    finally:
        consumer.close()


def test_a_second_consumer_with_the_same_instance_id_fences_the_first(bootstrap, filled, unique):
    group = unique("group")
    first = ConfluentMember(bootstrap, group, filled, **{"group.instance.id": "same"})
    poll_until(lambda _: first.assignment() == set(range(PARTITIONS)), first)
    second = ConfluentMember(bootstrap, group, filled, **{"group.instance.id": "same"})
    try:
        poll_until(lambda _: second.assignment() == set(range(PARTITIONS)), second)
        with pytest.raises(confluent_kafka.KafkaException) as fenced:
            poll_until(lambda _: False, first)
        assert fenced.value.args[0].code() in (
            confluent_kafka.KafkaError._FATAL,
            confluent_kafka.KafkaError.FENCED_INSTANCE_ID,
        )
    finally:
        second.close()
        first.close()


def test_members_of_different_clients_share_a_group(bootstrap, filled, unique):
    group = unique("group")
    first, second = ConfluentMember(bootstrap, group, filled), KafkaPythonMember(bootstrap, group, filled)
    try:
        poll_until(lambda _: len(first.assignment()) == len(second.assignment()) == 2, first, second)
        assert first.assignment() | second.assignment() == set(range(PARTITIONS))
    finally:
        second.close()
        first.close()
