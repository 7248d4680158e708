"""The orders of the demo, from a seed, and what has to become of them. Pure: the proof relies on it."""

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

ORDERS, ENRICHED, REVENUE = "orders", "orders-enriched", "revenue"
"""The topics."""

WINDOW_MS = 10_000
WATERMARK_MS = 20_000
"""How much later than a younger one an order may be read. One that is later would be in no window."""

_BEGIN_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z
_APART_MS = 40
_JITTER_MS = 2_000
_CLOSING_MS = 3_600_000

PRODUCTS = {
    "p1": ("spool of thread", 250),
    "p2": ("star-shaped button", 125),
    "p3": ("wooden crossbar", 990),
    "p4": ("ball of yarn", 475),
    "p5": ("pair of scissors", 1_890),
    "p6": ("box of needles", 340),
}
"""By id: name, and price in cents."""

REGIONS = {
    "AT": "Europe",
    "CZ": "Europe",
    "DE": "Europe",
    "BR": "Americas",
    "US": "Americas",
    "JP": "Asia",
    "IN": "Asia",
    "KE": "Africa",
}
"""By country."""


class Order(NamedTuple):
    order: int
    customer: str
    country: str
    product: str
    quantity: int
    at_ms: int
    """When it was made. Orders arrive a little out of order."""

    @property
    def key(self) -> bytes:
        return f"{self.order:08d}".encode()

    @property
    def value(self) -> bytes:
        return json.dumps(self._asdict(), separators=(",", ":")).encode()


class Window(NamedTuple):
    start_ms: int
    region: str


class Revenue(NamedTuple):
    orders: int
    cents: int


def generate(count: int, seed: int) -> Iterator[Order]:
    """The last order is made an hour after the others: it closes their windows."""
    rng = Random(seed)
    for i in range(count):
        at_ms = _BEGIN_MS + i * _APART_MS + rng.randrange(_JITTER_MS)
        if i == count - 1:
            at_ms += _CLOSING_MS
        yield Order(
            order=i,
            customer=f"c{rng.randrange(1_000):03d}",
            country=rng.choice(list(REGIONS)),
            product=rng.choice(list(PRODUCTS)),
            quantity=rng.randint(1, 9),
            at_ms=at_ms,
        )


def parse_order(value: bytes) -> Order:
    return Order(**json.loads(value))


def enrich(order: Order) -> dict[str, Any]:
    """The value of the record that Spark has to make of an order."""
    name, price_cents = PRODUCTS[order.product]
    return {
        **order._asdict(),
        "region": REGIONS[order.country],
        "name": name,
        "price_cents": price_cents,
        "total_cents": price_cents * order.quantity,
    }


def parse_revenue(value: bytes) -> tuple[Window, Revenue]:
    told = json.loads(value)
    return Window(told["start_ms"], told["region"]), Revenue(told["orders"], told["cents"])


def sum_windows(orders: Iterable[Order]) -> tuple[dict[Window, Revenue], int]:
    """The windows that the youngest order has closed, and the number of those that it has not.

    Spark writes a window when the watermark, which is a little behind the youngest order, has passed its end.
    """
    sums: dict[Window, Revenue] = {}
    youngest_ms = 0
    for order in orders:
        window = Window(order.at_ms // WINDOW_MS * WINDOW_MS, REGIONS[order.country])
        known = sums.get(window, Revenue(0, 0))
        cents = PRODUCTS[order.product][1] * order.quantity
        sums[window] = Revenue(known.orders + 1, known.cents + cents)
        youngest_ms = max(youngest_ms, order.at_ms)
    closed = {
        window: revenue
        for window, revenue in sums.items()
        if window.start_ms + WINDOW_MS <= youngest_ms - WATERMARK_MS
    }
    return closed, len(sums) - len(closed)
