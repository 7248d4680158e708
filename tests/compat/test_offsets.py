"""Positions in a log: by offset, by time, at both ends, after trimming, beyond the ends."""

import asyncio
import time

import aiokafka
import confluent_kafka
import cramjam
import kafka
import pytest
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.compat.clients import CLIENTS, CODECS, Client, Sent
from tests.support.batches import batch, record
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch, split

LIST_OFFSETS, DELETE_RECORDS, OFFSET_OUT_OF_RANGE = 2, 21, 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
BASE_MS = 1_700_000_000_000
STAMPS = (10, 30, 20, 50, 40)  # out of order on purpose; one batch each


def list_offset(connection: Connection, topic: str, timestamp: int, *, version: int = 11, partition: int = 0):
    answer = connection.call(
        LIST_OFFSETS,
        version,
        {
            "replica_id": -1,
            "isolation_level": 0,
            "timeout": 5000,
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
                    ],
                }
            ],
        },
    )
    return answer.topics[0].partitions[0]


@pytest.fixture
def stamped(topic: str, raw: Connection) -> str:
    for stamp in STAMPS:
        assert int(produce(raw, topic, batch([b"v"], timestamp=BASE_MS + stamp)).error_code) == 0
    return topic


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (LATEST, (5, -1)),
        (EARLIEST, (0, -1)),
        (MAX_TIMESTAMP, (3, BASE_MS + 50)),
        (EARLIEST_LOCAL, (0, -1)),
        (LATEST_TIERED, (-1, -1)),
        (0, (0, BASE_MS + 10)),
        (BASE_MS + 10, (0, BASE_MS + 10)),
        (BASE_MS + 11, (1, BASE_MS + 30)),
        (BASE_MS + 31, (3, BASE_MS + 50)),
        (BASE_MS + 51, (-1, -1)),
    ],
)
def test_list_offsets_finds_the_first_record_at_or_after_a_time(stamped, raw, timestamp, expected):
    row = list_offset(raw, stamped, timestamp)
    got_ms = -1 if row.timestamp is None else row.timestamp
    assert (int(row.error_code), row.offset, got_ms) == (0, *expected)
    if row.offset >= 0:
        assert row.leader_epoch == 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_time_is_found_inside_a_batch(bootstrap, topic, raw, codec):
    sent = [Sent(b"v" * 100, timestamp_ms=BASE_MS + i * 10) for i in range(50)]
    CLIENTS[0].produce(bootstrap, topic, sent, codec=codec)
    row = list_offset(raw, topic, BASE_MS + 305)
    assert (row.offset, row.timestamp) == (31, BASE_MS + 310)
    row = list_offset(raw, topic, MAX_TIMESTAMP)
    assert (row.offset, row.timestamp) == (49, BASE_MS + 490)


def test_a_record_is_found_inside_a_large_compressed_batch(topic, raw):
    """It is looked for away from the event loop here; the answer is the same."""
    payload = b"".join(record(i, bytes(10_000), timestamp_delta=i) for i in range(100))
    packed = bytes(cramjam.zstd.compress(payload))
    sent = batch(payload=packed, count=100, attributes=4, timestamp=BASE_MS, max_timestamp=BASE_MS + 99)
    assert int(produce(raw, topic, sent).error_code) == 0
    for timestamp, delta in ((BASE_MS + 42, 42), (BASE_MS - 5, 0), (MAX_TIMESTAMP, 99)):
        row = list_offset(raw, topic, timestamp)
        assert (row.offset, row.timestamp) == (delta, BASE_MS + delta)
    assert list_offset(raw, topic, BASE_MS + 100).offset == -1


def test_the_max_timestamp_is_the_first_of_the_latest_records(topic, raw):
    payload = (
        record(0, b"a", timestamp_delta=5)
        + record(1, b"b", timestamp_delta=9)
        + record(2, b"c", timestamp_delta=9)
    )
    produce(raw, topic, batch(payload=payload, count=3, timestamp=BASE_MS, max_timestamp=BASE_MS + 9))
    row = list_offset(raw, topic, MAX_TIMESTAMP)
    assert (row.offset, row.timestamp) == (1, BASE_MS + 9)


def test_an_empty_log_has_two_ends_and_no_times(topic, raw):
    assert list_offset(raw, topic, EARLIEST).offset == 0
    assert list_offset(raw, topic, LATEST).offset == 0
    for timestamp in (MAX_TIMESTAMP, BASE_MS):
        row = list_offset(raw, topic, timestamp)
        assert (int(row.error_code), row.offset) == (0, -1)


def test_confluent_kafka_finds_offsets_by_time_and_end(bootstrap, stamped):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition(stamped, 0), 20) == (0, 5)
        found = consumer.offsets_for_times([confluent_kafka.TopicPartition(stamped, 0, BASE_MS + 31)], 20)
        assert found[0].offset == 3
        found = consumer.offsets_for_times([confluent_kafka.TopicPartition(stamped, 0, BASE_MS + 999)], 20)
        assert found[0].offset == confluent_kafka.OFFSET_END
    finally:
        consumer.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    tp = confluent_kafka.TopicPartition(stamped, 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 5),
        (OffsetSpec.max_timestamp(), 3),
        (OffsetSpec.for_timestamp(BASE_MS + 11), 1),
    ):
        assert admin.list_offsets({tp: spec})[tp].result(20).offset == offset


def test_kafka_python_finds_offsets_by_time_and_end(bootstrap, stamped):
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        tp = kafka.TopicPartition(stamped, 0)
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets([tp]) == {tp: 5}
        assert consumer.offsets_for_times({tp: BASE_MS + 31})[tp].offset == 3
        assert consumer.offsets_for_times({tp: BASE_MS + 999})[tp] is None
    finally:
        consumer.close()


def test_aiokafka_finds_offsets_by_time_and_end(bootstrap, stamped):
    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        try:
            tp = aiokafka.TopicPartition(stamped, 0)
            assert await consumer.beginning_offsets([tp]) == {tp: 0}
            assert await consumer.end_offsets([tp]) == {tp: 5}
            assert (await consumer.offsets_for_times({tp: BASE_MS + 31}))[tp].offset == 3
            assert (await consumer.offsets_for_times({tp: BASE_MS + 999}))[tp] is None
        finally:
            await consumer.stop()

    asyncio.run(run())


def test_every_client_starts_where_it_is_told(bootstrap, topic, client: Client):
    client.produce(bootstrap, topic, [Sent(str(i).encode()) for i in range(20)])
    assert [r.offset for r in client.consume(bootstrap, topic, 5, offset=15)] == list(range(15, 20))


def test_a_fetch_beyond_either_end_is_out_of_range(stamped, raw):
    assert fetch(raw, stamped, 6)[0] == OFFSET_OUT_OF_RANGE
    assert fetch(raw, stamped, 5) == (0, b"")
    trim(raw, stamped, 2)
    assert fetch(raw, stamped, 1)[0] == OFFSET_OUT_OF_RANGE
    assert fetch(raw, stamped, 2)[0] == 0


def trim(connection: Connection, topic: str, offset: int):
    answer = connection.call(
        DELETE_RECORDS,
        2,
        {
            "timeout": 10_000,
            "topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}],
        },
    )
    return answer.topics[0].partitions[0]


def test_trimmed_records_are_gone_and_the_start_moves(stamped, raw):
    row = trim(raw, stamped, 3)
    assert (int(row.error_code), row.low_watermark) == (0, 3)
    assert list_offset(raw, stamped, EARLIEST).offset == 3
    assert [b.base_offset for b in split(fetch(raw, stamped, 3)[1])] == [3, 4]
    row = trim(raw, stamped, -1)
    assert (int(row.error_code), row.low_watermark) == (0, 5)
    assert list_offset(raw, stamped, EARLIEST).offset == 5
    assert int(trim(raw, stamped, 6).error_code) == OFFSET_OUT_OF_RANGE


def test_an_offset_inside_a_batch_gives_the_whole_batch(bootstrap, topic, raw):
    produce(raw, topic, batch([str(i).encode() for i in range(10)]))
    _, records = fetch(raw, topic, 7)
    assert [(b.base_offset, b.count) for b in split(records)] == [(0, 10)]
    for client in CLIENTS:
        assert [r.offset for r in client.consume(bootstrap, topic, 3, offset=7)] == [7, 8, 9]


def test_a_consumer_resets_to_the_earliest_after_falling_out_of_range(bootstrap, stamped, raw):
    trim(raw, stamped, 3)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition(stamped, 0, 1)])
    try:
        message, deadline = None, time.monotonic() + 20
        while message is None and time.monotonic() < deadline:
            message = consumer.poll(1)
        assert message is not None
        assert message.offset() == 3
    finally:
        consumer.close()
