"""Many requests on one connection whose first is not answered yet: what the node keeps is bounded."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.network.connection import MAX_PARKED_BYTES, MAX_PENDING_REPLIES
from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection, request_bytes
from tests.support.stored import FETCH, fetch_values
from tests.support.topics import create_topic

METADATA = 3


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        create_topic(running.bootstrap_servers, "wide", 300)
        yield running


def most(broker: Broker, measure: Callable[[Any], int]) -> int:
    return broker.look(lambda node: max(measure(c) for c in node.server.connections.values()))


def begin_long_poll(connection: Connection, topic: str) -> None:
    values = fetch_values([(topic, 0, 0)]) | {"max_wait": 120_000, "min_bytes": 1_000_000}
    connection.socket.sendall(request_bytes(FETCH, 12, values, correlation_id=0))


@pytest.mark.parametrize(("topic", "topics", "count"), [("small", [], 11_000), ("large", None, 2_000)])
def test_what_waits_behind_a_long_poll_is_bounded_and_answered_in_order(broker, topic, topics, count):
    create_topic(broker.bootstrap_servers, topic)
    with Connection(broker.bootstrap_servers) as connection, Connection(broker.bootstrap_servers) as other:
        begin_long_poll(connection, topic)
        asks = [request_bytes(METADATA, 1, {"topics": topics}, correlation_id=i + 1) for i in range(count)]
        connection.socket.sendall(b"".join(asks))
        seen = bytes_seen = 0
        began = quiet_since = time.monotonic()
        # A busy machine takes its time until the node has read so much. Then it must stay within the bounds.
        while (now := time.monotonic()) < quiet_since + 1.5 or (seen <= 100 and now < began + 60):
            waiting = most(broker, lambda c: len(c._pending))
            bytes_seen = max(bytes_seen, most(broker, lambda c: c._parked_bytes))
            if waiting > seen:
                seen, quiet_since = waiting, time.monotonic()
            time.sleep(0.02)
        assert 100 < seen <= MAX_PENDING_REPLIES
        assert bytes_seen < MAX_PARKED_BYTES + (1 << 20)
        produce(other, topic, batch([b"x" * 1_000_001]), acks=1)
        answered = [int.from_bytes(connection.receive_frame()[:4], "big") for _ in range(count + 1)]
        assert answered == list(range(count + 1))
        assert most(broker, lambda c: c._parked_bytes) == 0
