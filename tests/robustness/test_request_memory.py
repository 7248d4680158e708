"""queued.max.request.bytes bounds what the requests of all connections take together."""

import time
from collections.abc import Callable, Iterator

import pytest

from odradek.broker.network.buffers import LARGE_BYTES, SMALL_BYTES
from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import PRODUCE, produce_values
from tests.support.raw import Connection, request_bytes
from tests.support.topics import create_topic

API_VERSIONS = 18
MOST = 4 << 20
FRAME = request_bytes(PRODUCE, 9, produce_values("t", batch([b"x" * 900_000])))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"queued.max.request.bytes": MOST, "socket.request.max.bytes": MOST, "message.max.bytes": MOST}
    with Broker(settings) as broker:
        create_topic(broker.bootstrap_servers, "t", configs={"max.message.bytes": str(MOST)})
        yield broker


def in_use(broker: Broker) -> int:
    return broker.look(lambda node: node.server.buffers.in_use)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_was_taken_is_given_back(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        connection.socket.sendall(FRAME)
        assert connection.receive(PRODUCE, 9).responses[0].partition_responses[0].error_code == 0
        unknown = [{"name": f"unknown-{i}"} for i in range(3_000)]
        connection.call(3, 9, {"topics": unknown, "allow_auto_topic_creation": False})
    until(lambda: in_use(broker) == 0)


def test_incomplete_requests_take_no_more_than_the_bound_and_all_are_answered_in_the_end(
    broker: Broker,
) -> None:
    connections = [Connection(broker.bootstrap_servers) for _ in range(40)]
    try:
        for connection in connections:
            connection.socket.settimeout(30)
            connection.socket.sendall(FRAME[:400_000])
        until(lambda: in_use(broker) >= MOST)
        time.sleep(0.05)
        assert in_use(broker) <= MOST + LARGE_BYTES + SMALL_BYTES
        with Connection(broker.bootstrap_servers) as late:
            late.send(API_VERSIONS, 0, {})
            for connection in connections:
                connection.socket.setblocking(False)
            rest = {connection: memoryview(FRAME)[400_000:] for connection in connections}
            answered = 0
            while rest or answered < len(connections):
                for connection, data in list(rest.items()):
                    try:
                        rest[connection] = data[connection.socket.send(data) :]
                    except BlockingIOError:
                        pass
                    if not rest[connection]:
                        del rest[connection]
                        connection.socket.settimeout(30)
                assert in_use(broker) <= MOST + LARGE_BYTES + SMALL_BYTES
                for connection in connections:
                    if connection not in rest and connection.socket.gettimeout() == 30:
                        answer = connection.receive(PRODUCE, 9)
                        assert answer.responses[0].partition_responses[0].error_code == 0
                        connection.socket.settimeout(29)
                        answered += 1
            assert late.receive(API_VERSIONS, 0).error_code == 0
    finally:
        for connection in connections:
            connection.close()
    until(lambda: in_use(broker) == 0)


def test_whoever_waits_goes_on_when_those_before_it_hang_up(broker: Broker) -> None:
    holders = [Connection(broker.bootstrap_servers) for _ in range(MOST // SMALL_BYTES)]
    for connection in holders:
        connection.socket.sendall(FRAME[:1_000])
    until(lambda: in_use(broker) >= MOST)
    with Connection(broker.bootstrap_servers) as waiting:
        waiting.send(API_VERSIONS, 0, {})
        waiting.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            waiting.receive(API_VERSIONS, 0)
        for connection in holders:
            connection.close()
        waiting.socket.settimeout(20)
        assert waiting.receive(API_VERSIONS, 0).error_code == 0
