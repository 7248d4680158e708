"""Queries with state (RocksDB), killed on both sides of the commit point.

What they write is what plain Python makes of the same records, each of it once.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import confluent_kafka
import pytest

from tests.spark.conftest import check_nothing_open, read_committed
from tests.spark.driver import Driver
from tests.spark.stateful import QUERIES
from tests.support.node import running
from tests.support.topics import create_topic

CLICKS = 2_000
BEGIN_MS = 1_700_000_000_000
WINDOW_MS = 10_000
SOON_MS = 5_000
HOUR_MS = 3_600_000
ROUNDS = int(os.environ.get("ODRADEK_SOAK_ROUNDS", "1"))

pytestmark = [pytest.mark.timeout(900), pytest.mark.parametrize("turn", range(ROUNDS))]


class Event(NamedTuple):
    user: str
    id: str
    at_ms: int


class Story(NamedTuple):
    """What happened, in the order in which it was told: seconds out of order, some of it twice."""

    clicks: list[Event]
    orders: list[Event]
    late: list[Event]
    """Clicks of the day before that are told last, which nobody waits for any more."""
    ends: list[Event]
    """An hour later, so that everything before is over."""


def tell(random: Random) -> Story:
    clicks, orders = [], []
    for i in range(CLICKS):
        at_ms = BEGIN_MS + i * 100 + random.randrange(-4_000, 0)
        user, id_ = f"u{random.randrange(7)}", str(i)
        clicks.append(Event(user, id_, at_ms))
        if random.random() < 0.2:
            clicks.append(Event(user, id_, at_ms + random.randrange(3_000)))
        if random.random() < 0.5:
            orders.append(Event(user, id_, at_ms + random.randrange(-1_000, 8_000)))
    late = [Event("u0", f"late-{i}", BEGIN_MS - 24 * HOUR_MS) for i in range(5)]
    return Story(clicks, orders, late, [Event("u0", "end", BEGIN_MS + HOUR_MS)])


def expected(story: Story) -> dict[str, Counter[str]]:
    windows = Counter((c.user, c.at_ms - c.at_ms % WINDOW_MS) for c in story.clicks)
    ordered = {order.id: order.at_ms for order in (*story.orders, *story.ends)}
    pairs = []
    for click in (*story.clicks, *story.ends):
        order_ms = ordered.get(click.id)
        is_soon = order_ms is not None and click.at_ms <= order_ms <= click.at_ms + SOON_MS
        pairs.append(f"{click.id} {click.at_ms} {order_ms if is_soon else '-'}")
    return {
        "counted": Counter(f"{user} {begin} {count}" for (user, begin), count in windows.items()),
        "joined": Counter(pairs),
        "deduplicated": Counter({event.id for event in (*story.clicks, *story.ends)}),
    }


@pytest.fixture
def story(turn: int) -> Story:
    return tell(Random(turn))


@pytest.fixture
def bootstrap(tmp_path: Path, story: Story) -> Iterator[str]:
    with running(tmp_path / "data") as node:
        producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
        refused: list[object] = []
        told = {"clicks": [*story.clicks, *story.late, *story.ends], "orders": [*story.orders, *story.ends]}
        for topic, events in told.items():
            # One partition: whatever the batches are, they see the same order. Old records are to stay.
            create_topic(node.bootstrap, topic, 1, {"retention.ms": "-1"})
            for user, id_, at_ms in events:
                producer.produce(
                    topic,
                    key=user,
                    value=id_,
                    timestamp=at_ms,
                    on_delivery=lambda e, _: e and refused.append(e),
                )
        assert producer.flush(30) == 0 and not refused, refused
        for name in QUERIES:
            create_topic(node.bootstrap, name, 2, {})
        yield node.bootstrap


def test_windows_joins_and_deduplication_survive_kills(
    bootstrap: str, story: Story, tmp_path: Path, turn: int
) -> None:
    def start(step: str | None) -> Driver:
        return Driver(bootstrap, tmp_path, step, holds=len(QUERIES), program=("stateful",))

    def wait(driver: Driver) -> None:
        for place in range(len(QUERIES)):
            driver.reached(place)

    first = start("committed")
    wait(first)  # all have state now
    first.arm("before the decision", len(QUERIES))
    wait(first)
    first.kill()
    second = start("after the decision")
    wait(second)
    second.kill()
    last = start(None)
    assert last.finish() == 0, last.log()
    for name, values in expected(story).items():
        found = Counter((message.value() or b"").decode() for message in read_committed(bootstrap, name))
        assert found == values, f"{name}: {found - values} too much, {values - found} missing"
    check_nothing_open(bootstrap)
