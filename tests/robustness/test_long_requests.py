"""Requests that take many turns of the loop are answered like short ones, and do not delay other clients."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.broker.node import Node
from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import PRODUCE
from tests.support.raw import Connection
from tests.support.topics import create_topic

FETCH, METADATA, FIND_COORDINATOR, API_VERSIONS = 1, 3, 10, 18
PARTITIONS = 120
UNKNOWN_TOPIC_OR_PARTITION = 3


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A node whose slices are so small that nearly every request of these tests is a long one."""
    with Broker({"auto.create.topics.enable": False}) as broker:
        broker.look(_shrink)
        create_topic(broker.bootstrap_servers, "many", PARTITIONS)
        yield broker


def _shrink(node: Node) -> None:
    node.slices.resize(400)


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers) as connection:
        yield connection


def produce_to(indexes: list[int], records: bytes | None, *, acks: int = -1) -> dict[str, Any]:
    rows = [{"index": index, "records": records} for index in indexes]
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": 30_000,
        "topic_data": [
            {"name": "many", "partition_data": rows},
            {"name": "none", "partition_data": rows[:2]},
        ],
    }


def fetch_of(topic_id: Any, offset: int, *, max_wait: int = 0, **session: Any) -> dict[str, Any]:
    rows = [
        {"partition": i, "fetch_offset": offset, "partition_max_bytes": 1 << 20} for i in range(PARTITIONS)
    ]
    return {
        "replica_id": -1,
        "max_wait": max_wait,
        "min_bytes": 1,
        "max_bytes": 1 << 30,
        "session_epoch": -1,
        "topics": [{"topic": "many", "topic_id": topic_id, "partitions": rows}],
        "forgotten_topics_data": [],
        **session,
    }


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_a_produce_of_many_partitions_is_answered_as_many_are(connection: Connection, version: int) -> None:
    first = _ends(connection)
    answer = connection.call(PRODUCE, version, produce_to([*range(PARTITIONS), PARTITIONS], batch([b"x"])))
    many, none = answer.responses
    assert [(row.index, row.error_code, row.base_offset) for row in many.partition_responses] == [
        *((i, 0, first) for i in range(PARTITIONS)),
        (PARTITIONS, UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert [row.error_code for row in none.partition_responses] == [UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert _ends(connection) == first + 1


def test_a_partition_that_is_named_again_is_written_again(connection: Connection) -> None:
    first = _ends(connection)
    answer = connection.call(PRODUCE, 9, produce_to([0] * 50, batch([b"x"])))
    rows = answer.responses[0].partition_responses
    assert [row.base_offset for row in rows] == list(range(first, first + 50))
    connection.call(
        PRODUCE, 9, produce_to([i for i in range(1, PARTITIONS) for _ in range(50)], batch([b"x"]))
    )
    assert _ends(connection) == first + 50


@pytest.mark.parametrize("records", [None, b""])
def test_records_that_are_none_are_refused_one_by_one(connection: Connection, records: bytes | None) -> None:
    answer = connection.call(PRODUCE, 9, produce_to(list(range(PARTITIONS)), records))
    codes = {row.error_code for row in answer.responses[0].partition_responses}
    few = connection.call(PRODUCE, 9, produce_to([0], records))
    assert codes == {few.responses[0].partition_responses[0].error_code}


def test_a_producer_without_acknowledgements_loses_its_connection_for_an_error(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        connection.send(PRODUCE, 9, produce_to(list(range(PARTITIONS)), batch([b"x"]), acks=0))
        assert connection.closed_by_peer()


@pytest.mark.parametrize("version", [4, 5, 9, 12, 13, 17])
def test_a_fetch_of_many_partitions_is_answered_as_many_are(
    broker: Broker, connection: Connection, version: int
) -> None:
    topic_id = broker.look(lambda node: node.metadata.image.topics_by_name["many"].id)
    answer = connection.call(FETCH, version, fetch_of(topic_id, 0))
    rows = answer.responses[0].partitions
    assert [(row.partition_index, row.error_code) for row in rows] == [(i, 0) for i in range(PARTITIONS)]
    ends = {row.high_watermark for row in rows}
    assert ends == {_ends(connection)}
    assert len({bytes(row.records or b"") for row in rows}) >= 1


def test_a_session_of_many_partitions_goes_on_with_what_is_new(broker: Broker) -> None:
    topic_id = broker.look(lambda node: node.metadata.image.topics_by_name["many"].id)
    with Connection(broker.bootstrap_servers) as connection:
        end = _ends(connection)
        full = connection.call(FETCH, 13, fetch_of(topic_id, end, session_epoch=0))
        assert full.session_id
        nothing = {**fetch_of(topic_id, end), "topics": []}
        session = {"session_id": full.session_id, "session_epoch": 1}
        assert not connection.call(FETCH, 13, {**nothing, **session}).responses
        with Connection(broker.bootstrap_servers) as other:
            other.call(PRODUCE, 9, produce_to([7], batch([b"new"])))
        news = connection.call(FETCH, 13, {**nothing, **session, "session_epoch": 2})
        assert [row.partition_index for row in news.responses[0].partitions] == [7]
        other_rows = [i for i in range(PARTITIONS) if i != 7]
        connection.call(PRODUCE, 9, produce_to(other_rows, batch([b"new"])))


def test_a_fetch_that_waits_on_many_partitions_is_woken_by_one(broker: Broker) -> None:
    topic_id = broker.look(lambda node: node.metadata.image.topics_by_name["many"].id)
    with Connection(broker.bootstrap_servers) as waiting, Connection(broker.bootstrap_servers) as other:
        end = _ends(other)
        waiting.send(FETCH, 12, fetch_of(topic_id, end, max_wait=60_000))
        _until(lambda: broker.look(_parked) >= PARTITIONS)
        other.call(PRODUCE, 9, produce_to([33], batch([b"new"])))
        answer = waiting.receive(FETCH, 12)
        assert [row.partition_index for row in answer.responses[0].partitions if row.records] == [33]
        _until(lambda: broker.look(_parked) == 0)
        other.call(PRODUCE, 9, produce_to([i for i in range(PARTITIONS) if i != 33], batch([b"new"])))


def test_a_fetch_that_waits_is_answered_when_its_time_is_over(broker: Broker) -> None:
    topic_id = broker.look(lambda node: node.metadata.image.topics_by_name["many"].id)
    with Connection(broker.bootstrap_servers) as connection:
        answer = connection.call(FETCH, 12, fetch_of(topic_id, _ends(connection), max_wait=50))
        assert len(answer.responses[0].partitions) == PARTITIONS
        _until(lambda: broker.look(_parked) == 0)


def test_many_fetches_that_wait_on_one_partition_are_all_woken(broker: Broker) -> None:
    create_topic(broker.bootstrap_servers, "one")
    one = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    fetch = {**fetch_of(None, 0, max_wait=60_000), "topics": [{"topic": "one", "partitions": one}]}
    waiting = [Connection(broker.bootstrap_servers) for _ in range(60)]
    try:
        for connection in waiting:
            connection.send(FETCH, 11, fetch)
        _until(lambda: broker.look(_parked) == 60)
        with Connection(broker.bootstrap_servers) as other:
            rows = [{"index": 0, "records": batch([b"x"])}]
            produce = {**produce_to([], None), "topic_data": [{"name": "one", "partition_data": rows}]}
            other.call(PRODUCE, 9, produce)
        for connection in waiting:
            answer = connection.receive(FETCH, 11)
            assert answer.responses[0].partitions[0].high_watermark == 1
    finally:
        for connection in waiting:
            connection.close()


def test_replies_keep_the_order_of_the_requests(connection: Connection) -> None:
    topics = [{"name": f"unknown-{i}"} for i in range(300)]
    keys = {"key_type": 9, "coordinator_keys": [str(i) for i in range(300)]}
    sent = [
        connection.send(API_VERSIONS, 0, {}),
        connection.send(METADATA, 9, {"topics": topics, "allow_auto_topic_creation": False}),
        connection.send(PRODUCE, 9, produce_to(list(range(PARTITIONS)), None)),
        connection.send(API_VERSIONS, 0, {}),
        connection.send(FIND_COORDINATOR, 4, keys),
        connection.send(API_VERSIONS, 0, {}),
    ]
    apis = [(API_VERSIONS, 0), (METADATA, 9), (PRODUCE, 9), (API_VERSIONS, 0), (FIND_COORDINATOR, 4)]
    received = []
    for api_key, version in [*apis, (API_VERSIONS, 0)]:
        connection.receive(api_key, version)
        received.append(connection.received_correlation_id)
    assert received == sent


def test_a_request_of_too_many_entries_is_refused(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.broker.dispatch.MAX_ENTRIES", 500)
    with Connection(broker.bootstrap_servers) as connection:
        connection.call(PRODUCE, 9, produce_to([0] * 480, None))
        connection.send(PRODUCE, 9, produce_to([0] * 500, None))
        assert connection.closed_by_peer()


def _ends(connection: Connection) -> int:
    """The end of every partition of the topic, which have the same."""
    rows = [{"partition_index": i, "timestamp": -1} for i in range(PARTITIONS)]
    answer = connection.call(2, 5, {"replica_id": -1, "topics": [{"name": "many", "partitions": rows}]})
    (end,) = {row.offset for row in answer.topics[0].partitions}
    return int(end)


def _parked(node: Node) -> int:
    return sum(len(p.fetch_waiters.waiting) for p in node.replicas.partitions.values())


def _until(is_so: Any) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)
