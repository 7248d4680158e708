"""Transactions as the Python clients run them: all or nothing, for records and for a group's offsets."""

import contextlib
import time
from collections.abc import Iterator

import pytest

from tests.compat.transactional import (
    REFUSED,
    TRANSACTIONAL,
    Fenced,
    Producer,
    TransactionalClient,
    end_offset,
)
from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.transactions import PRODUCE, TransactionalProducer

RECORDS = 23
INVALID_PRODUCER_ID_MAPPING = 49


@pytest.fixture(params=TRANSACTIONAL, ids=lambda c: c.name)
def client(request: pytest.FixtureRequest) -> TransactionalClient:
    found: TransactionalClient = request.param
    return found


@contextlib.contextmanager
def producing(client: TransactionalClient, bootstrap: str, name: str, **options: int) -> Iterator[Producer]:
    producer = client.producer(bootstrap, name, **options)
    try:
        yield producer
    finally:
        producer.close()


@pytest.mark.parametrize("reader", TRANSACTIONAL, ids=lambda c: c.name)
def test_a_reader_sees_what_was_committed_and_when(client, reader, bootstrap, unique, topic):
    with producing(client, bootstrap, unique("txn")) as producer:
        for number, commit in enumerate((True, False, True, False)):
            producer.begin()
            for part in "ab":
                producer.send(topic, b"%d%s %s" % (number, part.encode(), b"good" if commit else b"bad"))
            producer.commit() if commit else producer.abort()
        producer.begin()
        producer.send(topic, b"open")
        everything = reader.read(bootstrap, topic, committed=False)
        assert everything == [
            *(b"0a good", b"0b good", b"1a bad", b"1b bad", b"2a good", b"2b good", b"3a bad", b"3b bad"),
            b"open",
        ]
        expected = [b"0a good", b"0b good", b"2a good", b"2b good"]
        assert reader.read(bootstrap, topic, committed=True) == expected
        producer.commit()
        assert reader.read(bootstrap, topic, committed=True) == [*expected, b"open"]


def test_nothing_is_stable_behind_an_open_transaction(client, bootstrap, unique, topic, raw):
    with producing(client, bootstrap, unique("txn")) as producer:
        assert produce(raw, topic, batch([b"before"])).error_code == 0
        producer.begin()
        producer.send(topic, b"open")
        assert produce(raw, topic, batch([b"behind"])).error_code == 0
        assert end_offset(bootstrap, topic, committed=True) == 1
        assert client.read(bootstrap, topic, committed=True) == [b"before"]
        producer.abort()
        assert client.read(bootstrap, topic, committed=True) == [b"before", b"behind"]


def test_a_second_producer_fences_the_first(client, bootstrap, unique, topic):
    name = unique("txn")
    with producing(client, bootstrap, name) as first:
        first.begin()
        first.send(topic, b"zombie")
        with producing(client, bootstrap, name) as second:
            second.begin()
            second.send(topic, b"alive")
            with pytest.raises(Fenced):
                first.commit()
            second.commit()
    assert client.read(bootstrap, topic, committed=True) == [b"alive"]
    assert client.read(bootstrap, topic, committed=False) == [b"zombie", b"alive"]


def test_a_transaction_over_its_time_is_aborted(bootstrap, unique, make_topic):
    """Of all clients at once: a broker looks for them every ten seconds only."""
    names = {client.name: unique("txn") for client in TRANSACTIONAL}
    topics = {client.name: make_topic() for client in TRANSACTIONAL}
    with contextlib.ExitStack() as stack:
        producers = {}
        for client in TRANSACTIONAL:
            producer = stack.enter_context(producing(client, bootstrap, names[client.name], timeout_ms=1000))
            producer.begin()
            producer.send(topics[client.name], b"too slow")
            producers[client.name] = producer
        deadline = time.monotonic() + 25
        for client in TRANSACTIONAL:
            with TransactionalProducer(bootstrap, names[client.name]) as watcher:
                while watcher.describe().transaction_state != "CompleteAbort":
                    assert time.monotonic() < deadline, watcher.describe()
                    time.sleep(0.1)
            with pytest.raises(REFUSED):
                producers[client.name].commit()
    for client in TRANSACTIONAL:
        name, topic = names[client.name], topics[client.name]
        assert client.read(bootstrap, topic, committed=True) == []
        with producing(client, bootstrap, name) as again:
            again.begin()
            again.send(topic, b"in time")
            again.commit()
        assert client.read(bootstrap, topic, committed=True) == [b"in time"]


def test_consume_transform_produce_is_exactly_once(client, bootstrap, unique, make_topic, raw):
    """Every third transaction is aborted, and every fourth producer replaced by another."""
    source, target, group = make_topic(1, "in"), make_topic(1, "out"), unique("group")
    values = [b"%03d" % i for i in range(RECORDS)]
    for value in values:
        assert produce(raw, source, batch([value])).error_code == 0
    name, attempt, finished = unique("txn"), 0, 0
    consumer, producer = client.consumer(bootstrap, group, source), client.producer(bootstrap, name)
    try:
        deadline = time.monotonic() + 60
        while finished < RECORDS:
            assert time.monotonic() < deadline, f"{finished} records in time"
            taken = consumer.poll()
            if not taken:
                continue
            attempt += 1
            producer.begin()
            for record in taken:
                producer.send(target, record.value * 2)
            producer.send_offsets(consumer, source, {0: taken[-1].offset + 1})
            if attempt % 3 == 1:
                producer.abort()
                consumer.rewind()
                continue
            if attempt % 4 == 0:  # crashes before the end: the next one aborts what it left open
                producer.close()
                producer = client.producer(bootstrap, name)
                consumer.rewind()
                continue
            producer.commit()
            finished = taken[-1].offset + 1
        assert consumer.poll() == []
    finally:
        consumer.close()
        producer.close()
    assert client.read(bootstrap, target, committed=True) == [v * 2 for v in values]
    assert len(client.read(bootstrap, target, committed=False)) > RECORDS
    after = client.consumer(bootstrap, group, source)
    try:
        assert after.poll() == []  # the offsets were committed with the records
    finally:
        after.close()


@pytest.mark.parametrize("version", [9, 12])
def test_a_request_writes_for_one_transactional_producer_only(bootstrap, unique, make_topic, version):
    """Nothing of it is written, not even where the transaction of one of them goes on already."""
    topic, new_id = make_topic(partitions=2), version == 12
    with (
        TransactionalProducer(bootstrap, unique("txn"), epoch_per_transaction=new_id) as one,
        TransactionalProducer(bootstrap, unique("txn"), epoch_per_transaction=new_id) as other,
    ):
        one.init()
        other.init()
        assert one.produce(topic, b"begun").error_code == 0
        rows = [
            {"index": 0, "records": one.batch(topic, 0, b"of the one")},
            {"index": 1, "records": other.batch(topic, 1, b"of the other")},
        ]
        answer = one.connection.call(
            PRODUCE,
            version,
            {
                "transactional_id": one.transactional_id,
                "acks": -1,
                "timeout": 30_000,
                "topic_data": [{"name": topic, "partition_data": rows}],
            },
        )
        codes = [int(row.error_code) for row in answer.responses[0].partition_responses]
        assert codes == [INVALID_PRODUCER_ID_MAPPING] * 2
        assert end_offset(bootstrap, topic, committed=False) == 1
        assert one.end(commit=True) == 0
