"""The sample application's tests: each has topics of its own, on a real broker inside pytest."""

from collections.abc import Callable, Iterator

import pytest
from orders import Totals

from odradek.testing import Kafka

Start = Callable[[], Totals]


@pytest.fixture
def topics(kafka: Kafka) -> tuple[str, str]:
    return kafka.topic("orders"), kafka.topic("totals")


@pytest.fixture
def start(kafka: Kafka, topics: tuple[str, str]) -> Iterator[Start]:
    group = kafka.group("totals")
    started: list[Totals] = []

    def begin() -> Totals:
        started.append(Totals(kafka.bootstrap_servers, *topics, group))
        return started[-1]

    yield begin
    for app in started:
        app.close()


def test_orders_of_a_customer_are_summed(kafka: Kafka, topics: tuple[str, str], start: Start) -> None:
    orders, totals = topics
    for customer, amount in [("ada", "42"), ("bob", "7"), ("ada", "8")]:
        kafka.produce(orders, amount, key=customer)
    start().handle(3)
    assert [(r.key, r.value) for r in kafka.records(totals, n=3)] == [
        (b"ada", b"42"), (b"bob", b"7"), (b"ada", b"50"),
    ]  # fmt: skip


def test_an_amount_that_is_no_number_is_refused(kafka: Kafka, topics: tuple[str, str], start: Start) -> None:
    orders, totals = topics
    kafka.produce(orders, "much", key="ada")
    app = start()
    app.handle(1)
    assert app.refused == ["much"]
    assert kafka.values(totals) == []


def test_totals_arrive_through_a_retriable_error(kafka: Kafka, topics: tuple[str, str], start: Start) -> None:
    orders, totals = topics
    kafka.produce(orders, "42", key="ada")
    app = start()
    kafka.faults.errors("Produce", "NOT_LEADER_OR_FOLLOWER", times=1)
    app.handle(1)
    assert kafka.values(totals, n=1) == [b"42"]
