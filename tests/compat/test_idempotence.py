"""Sequences of idempotent producers: duplicates, gaps, epochs, the window of five batches."""

import time

import pytest

from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch, split

INIT_PRODUCER_ID, DESCRIBE_PRODUCERS = 22, 61
COORDINATOR_LOAD_IN_PROGRESS = 14
OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH = 45, 46, 47
INT32_MAX = 2**31 - 1


def init_producer(connection: Connection, version: int = 5) -> tuple[int, int]:
    values = {"transactional_id": None, "transaction_timeout": 60_000}
    values |= {"producer_id": -1, "producer_epoch": -1}
    for _ in range(100):
        answer = connection.call(INIT_PRODUCER_ID, version, values)
        if int(answer.error_code) != COORDINATOR_LOAD_IN_PROGRESS:
            break  # a broker that has to fetch a block of ids first may say so
        time.sleep(0.05)
    assert int(answer.error_code) == 0
    return answer.producer_id, answer.producer_epoch


class Producer:
    def __init__(self, connection: Connection, topic: str) -> None:
        self.connection, self.topic = connection, topic
        self.id, self.epoch = init_producer(connection)

    def send(self, sequence: int, count: int = 1, *, epoch: int | None = None, partition: int = 0):
        records = batch(
            [b"v"] * count,
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
        )
        row = produce(self.connection, self.topic, records, partition=partition)
        return int(row.error_code), row.base_offset


@pytest.fixture
def producer(raw, topic):
    return Producer(raw, topic)


def test_every_producer_id_is_new(raw):
    ids = [init_producer(raw) for _ in range(20)]
    assert len({i for i, _ in ids}) == 20
    assert {e for _, e in ids} == {0}


def test_a_retry_is_answered_with_the_first_offset_and_not_written_again(producer, raw, topic):
    assert producer.send(0, 3) == (0, 0)
    assert producer.send(3, 2) == (0, 3)
    assert producer.send(3, 2) == (0, 3)
    assert producer.send(0, 3) == (0, 0)
    assert [(b.base_offset, b.count) for b in split(fetch(raw, topic)[1])] == [(0, 3), (3, 2)]


def test_duplicates_are_known_within_the_last_five_batches(producer):
    for sequence in range(6):
        assert producer.send(sequence) == (0, sequence)
    assert producer.send(1) == (0, 1)
    assert producer.send(5) == (0, 5)
    assert producer.send(0)[0] in (OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER)


def test_a_gap_is_refused(producer):
    assert producer.send(0) == (0, 0)
    assert producer.send(2)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(1) == (0, 1)


def test_an_old_epoch_is_refused_and_a_new_one_starts_at_zero(producer):
    assert producer.send(0) == (0, 0)
    assert producer.send(5, epoch=1)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0, epoch=1) == (0, 1)
    assert producer.send(1, epoch=0)[0] == INVALID_PRODUCER_EPOCH
    assert producer.send(1, epoch=1) == (0, 2)


def test_a_producer_unknown_to_the_partition_may_start_anywhere(producer):
    assert producer.send(1000) == (0, 0)
    assert producer.send(1001) == (0, 1)


def test_sequences_wrap_after_the_largest_int(producer):
    assert producer.send(INT32_MAX - 1, 3) == (0, 0)
    assert producer.send(1) == (0, 3)
    assert producer.send(INT32_MAX - 1, 3) == (0, 0)


def test_each_partition_has_its_own_sequences(raw, make_topic):
    producer = Producer(raw, make_topic(partitions=2))
    assert producer.send(0, partition=0) == (0, 0)
    assert producer.send(0, partition=1) == (0, 0)
    assert producer.send(1, partition=1) == (0, 1)
    assert producer.send(1, partition=0) == (0, 1)


def test_describe_producers_shows_the_last_sequence(producer, raw, topic):
    producer.send(0, 4)
    answer = raw.call(DESCRIBE_PRODUCERS, 0, {"topics": [{"name": topic, "partition_indexes": [0]}]})
    row = answer.topics[0].partitions[0]
    assert int(row.error_code) == 0
    (active,) = row.active_producers
    assert (active.producer_id, active.producer_epoch, active.last_sequence) == (producer.id, 0, 3)
    assert active.current_txn_start_offset == -1
