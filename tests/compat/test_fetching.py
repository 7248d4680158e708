"""How a fetch waits, how much it returns, and what a fetch session keeps."""

import threading
import time

import pytest

from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import FETCH, fetch, fetch_values, split, topic_id

FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR = 70, 71, 106
UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, FENCED, UNKNOWN_EPOCH = 100, 3, 74, 75


def test_a_fetch_at_the_end_waits_its_time_and_comes_back_empty(topic, raw):
    began = time.monotonic()
    assert fetch(raw, topic, max_wait_ms=300, min_bytes=1) == (0, b"")
    assert 0.29 <= time.monotonic() - began < 2


def test_a_fetch_for_nothing_does_not_wait(topic, raw):
    began = time.monotonic()
    assert fetch(raw, topic, max_wait_ms=20_000, min_bytes=0) == (0, b"")
    assert time.monotonic() - began < 5


def test_a_waiting_fetch_answers_as_soon_as_a_record_arrives(bootstrap, topic, raw):
    got: list[tuple[float, bytes]] = []

    def wait() -> None:
        with Connection(bootstrap) as other:
            _, records = fetch(other, topic, max_wait_ms=20_000, min_bytes=1)
            got.append((time.monotonic(), records))

    waiter = threading.Thread(target=wait)
    waiter.start()
    waiter.join(0.5)
    assert waiter.is_alive(), "the fetch must wait for the first record"
    sent = time.monotonic()
    produce(raw, topic, batch([b"late"]))
    waiter.join(10)
    answered, records = got[0]
    assert b"late" in records
    assert answered - sent < 1


def test_a_fetch_waits_for_min_bytes(bootstrap, topic, raw):
    one = batch([b"x" * 100])
    produce(raw, topic, one)
    began = time.monotonic()
    _, records = fetch(raw, topic, max_wait_ms=400, min_bytes=len(one) + 1)
    assert time.monotonic() - began >= 0.39
    assert len(records) == len(one), "what is there comes when the time is up"
    produce(raw, topic, one)
    began = time.monotonic()
    _, records = fetch(raw, topic, max_wait_ms=20_000, min_bytes=len(one) + 1)
    assert len(records) == 2 * len(one)
    assert time.monotonic() - began < 5


def test_the_first_batch_comes_whole_even_above_every_limit(topic, raw):
    big = batch([b"x" * 50_000])
    for _ in range(3):
        produce(raw, topic, big)
    _, records = fetch(raw, topic, max_bytes=1000, partition_max_bytes=1000)
    assert [b.base_offset for b in split(records)] == [0]
    _, records = fetch(raw, topic, 2, max_bytes=1, partition_max_bytes=1)
    assert [b.base_offset for b in split(records)] == [2]


def test_only_the_first_partition_may_exceed_the_limit(make_topic, raw):
    name = make_topic(partitions=2)
    for partition in (0, 1):
        produce(raw, name, batch([b"x" * 50_000]), partition=partition)
    wanted = [(name, 0, 0), (name, 1, 0)]
    answer = raw.call(FETCH, 12, fetch_values(wanted, max_bytes=1000, partition_max_bytes=1000))
    sizes = [len(p.records or b"") for t in answer.responses for p in t.partitions]
    assert sorted(bool(s) for s in sizes) == [False, True]


def test_a_partition_limit_cuts_between_or_inside_batches(topic, raw):
    one = batch([b"x" * 1000])
    for _ in range(5):
        produce(raw, topic, one)
    _, records = fetch(raw, topic, partition_max_bytes=2 * len(one) + 10)
    assert [b.base_offset for b in split(records)] == [0, 1]
    assert len(records) <= 2 * len(one) + 10


class Session:
    """A fetch session kept by hand, Fetch v12."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.id, self.epoch = 0, 0

    def fetch(self, wanted, forgotten=None, max_wait_ms=0):
        answer = self.connection.call(
            FETCH,
            12,
            fetch_values(
                wanted,
                session_id=self.id,
                session_epoch=self.epoch,
                forgotten=forgotten,
                max_wait_ms=max_wait_ms,
                min_bytes=1 if max_wait_ms else 0,
            ),
        )
        if answer.error_code == 0:
            self.id, self.epoch = answer.session_id, self.epoch + 1
        rows = {(t.topic, p.partition_index): p for t in answer.responses for p in t.partitions}
        return int(answer.error_code), rows


def test_an_incremental_fetch_names_only_what_changed(make_topic, raw):
    name = make_topic(partitions=3)
    session = Session(raw)
    code, rows = session.fetch([(name, p, 0) for p in range(3)])
    assert (code, len(rows)) == (0, 3)
    assert session.id > 0
    assert session.fetch([]) == (0, {})
    produce(raw, name, batch([b"one"]), partition=1)
    code, rows = session.fetch([])
    assert (code, list(rows)) == (0, [(name, 1)])
    assert b"one" in bytes(rows[name, 1].records)
    code, rows = session.fetch([(name, 1, 1)])
    assert (code, rows) == (0, {})
    produce(raw, name, batch([b"two"]), partition=1)
    code, rows = session.fetch([], forgotten=[(name, 1)])
    assert (code, rows) == (0, {}), "a forgotten partition is not fetched"


def test_an_incremental_fetch_waits_for_any_of_its_partitions(bootstrap, make_topic, raw):
    name = make_topic(partitions=2)
    with Connection(bootstrap) as consumer:
        session = Session(consumer)
        session.fetch([(name, 0, 0), (name, 1, 0)])
        sender = threading.Timer(0.3, lambda: produce(raw, name, batch([b"x"]), partition=1))
        sender.start()
        began = time.monotonic()
        code, rows = session.fetch([], max_wait_ms=20_000)
        sender.join()
        assert (code, list(rows)) == (0, [(name, 1)])
        assert 0.25 < time.monotonic() - began < 10


def test_a_session_refuses_the_wrong_epoch_and_an_unknown_id(topic, raw):
    session = Session(raw)
    session.fetch([(topic, 0, 0)])
    session.epoch += 5
    assert session.fetch([])[0] == INVALID_FETCH_SESSION_EPOCH
    session.id += 1
    assert session.fetch([])[0] == FETCH_SESSION_ID_NOT_FOUND


def test_a_session_refuses_a_version_that_names_topics_otherwise(topic, raw):
    session = Session(raw)
    session.fetch([(topic, 0, 0)])
    values = fetch_values([], session_id=session.id, session_epoch=session.epoch)
    assert int(raw.call(FETCH, 13, values).error_code) == FETCH_SESSION_TOPIC_ID_ERROR
    assert session.fetch([])[0] == 0


def test_a_session_ends_when_its_owner_says_so(topic, raw):
    session = Session(raw)
    session.fetch([(topic, 0, 0)])
    closing = Session(raw)
    closing.id, closing.epoch = session.id, -1
    assert closing.fetch([])[0] == 0
    assert session.fetch([])[0] == FETCH_SESSION_ID_NOT_FOUND


def fetch_by_id(connection, identifier, *, partition=0, offset=0, leader_epoch=-1):
    values = fetch_values([("unused", partition, offset)])
    values["topics"][0]["topic_id"] = identifier
    values["topics"][0]["partitions"][0]["current_leader_epoch"] = leader_epoch
    answer = connection.call(FETCH, 17, values)
    row = answer.responses[0].partitions[0]
    return int(row.error_code), bytes(row.records or b"")


def test_fetches_by_topic_id(topic, raw):
    produce(raw, topic, batch([b"by id"]))
    identifier = topic_id(raw, topic)
    code, records = fetch_by_id(raw, identifier)
    assert code == 0
    assert b"by id" in records
    stranger = identifier.__class__(int=identifier.int ^ 1)
    assert fetch_by_id(raw, stranger) == (UNKNOWN_TOPIC_ID, b"")
    assert fetch_by_id(raw, identifier, partition=9) == (UNKNOWN_TOPIC_OR_PARTITION, b"")


@pytest.mark.parametrize(("leader_epoch", "code"), [(0, 0), (7, UNKNOWN_EPOCH)])
def test_a_fetch_is_fenced_by_leader_epoch(topic, raw, leader_epoch, code):
    assert fetch_by_id(raw, topic_id(raw, topic), leader_epoch=leader_epoch)[0] == code


def test_fetch_of_an_unknown_topic_or_partition_names_it(topic, raw, unique):
    for name, partition in ((unique("none"), 0), (topic, 7)):
        answer = raw.call(FETCH, 12, fetch_values([(name, partition, 0)]))
        assert int(answer.responses[0].partitions[0].error_code) == UNKNOWN_TOPIC_OR_PARTITION


def test_replies_come_in_the_order_of_the_requests(topic, raw):
    """A fetch that waits holds back what its connection asked afterwards; the log does not wait."""
    first = raw.send(FETCH, 12, fetch_values([(topic, 0, 0)], max_wait_ms=400, min_bytes=1_000_000))
    second = raw.send(FETCH, 12, fetch_values([(topic, 0, 0)]))
    order = []
    for _ in range(2):
        raw.receive(FETCH, 12)
        order.append(raw.received_correlation_id)
    assert order == [first, second]
