"""What the `kafka` fixture can do with records and names, on a broker that all of these tests share."""

import re
from collections.abc import Iterator

import pytest

from odradek.testing import Broker, Kafka, KafkaServer


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    found = KafkaServer.embedded({})
    yield found
    found.close()


@pytest.fixture
def kafka(server: KafkaServer) -> Iterator[Kafka]:
    view = Kafka(server)
    yield view
    view.close()


def test_what_is_produced_comes_back_with_its_key_and_headers(kafka: Kafka) -> None:
    topic = kafka.topic("orders", partitions=2)
    delivery = kafka.produce(
        topic, "42", key="ada", headers={"trace": "é", "empty": None}, partition=1, timestamp_ms=1_000
    )
    assert delivery == (topic, 1, 0, 1_000)
    (record,) = kafka.records(topic, n=1)
    assert (record.topic, record.partition, record.offset, record.timestamp_ms) == (topic, 1, 0, 1_000)
    assert (record.key, record.value) == (b"ada", b"42")
    assert list(record.headers) == [("trace", "é".encode()), ("empty", None)]


def test_a_tombstone_and_headers_of_one_name_can_be_produced(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, None, key=b"ada", headers=[("a", b"1"), ("a", b"2")])
    (record,) = kafka.records(topic)
    assert record.value is None
    assert list(record.headers) == [("a", b"1"), ("a", b"2")]
    assert kafka.values(topic) == [None]


def test_too_few_and_too_many_records_fail(kafka: Kafka) -> None:
    topic = kafka.topic()
    for i in range(30):
        kafka.produce(topic, str(i))
    with pytest.raises(
        AssertionError, match=r"expected 31 records within 0.1 s, found 30: \[.*b'19'\], \.\.\.$"
    ):
        kafka.records(topic, n=31, timeout=0.1)
    with pytest.raises(AssertionError, match="expected 2 records within 5 s, found 30"):
        kafka.values(topic, n=2)


def test_texts_of_the_fixtures_say_which_broker_they_mean(kafka: Kafka) -> None:
    assert repr(kafka) == f"<Kafka at {kafka.bootstrap_servers}>"
    topic, group = kafka.topic("orders"), kafka.group("billing")
    assert repr(kafka) == f"<Kafka at {kafka.bootstrap_servers}, {topic}, {group}>"
    assert repr(kafka.server) == f"<KafkaServer at {kafka.bootstrap_servers}>"
    assert repr(kafka.server.broker) == f"<Broker at {kafka.bootstrap_servers}>"
    assert repr(Broker()) == "<Broker, stopped>"


@pytest.mark.parametrize(
    ("api", "error", "wrong", "meant"),
    [
        ("Prodce", "NONE", "'Prodce' is not the name of a Kafka API", "Produce"),
        ("InitProducer", "NONE", "'InitProducer' is not the name of a Kafka API", "InitProducerId"),
        ("xyzzy", "NONE", "'xyzzy' is not the name of a Kafka API", None),
        ("Fetch", "NOT_LEADER", "'NOT_LEADER' is not the name of a Kafka error", "NOT_LEADER_OR_FOLLOWER"),
        (
            "Fetch",
            "request_timeout",
            "'request_timeout' is not the name of a Kafka error",
            "REQUEST_TIMED_OUT",
        ),
        ("Fetch", "XYZZY", "'XYZZY' is not the name of a Kafka error", None),
    ],
)
def test_a_misspelt_name_of_an_api_or_an_error_is_answered_with_the_one_meant(
    kafka: Kafka, api: str, error: str, wrong: str, meant: str | None
) -> None:
    said = wrong if meant is None else f"{wrong}; did you mean {meant}?"
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        kafka.faults.errors(api, error)


def test_api_names_may_be_written_as_in_the_protocol(kafka: Kafka) -> None:
    for api in ("InitProducerId", "init_producer_id", "INIT_PRODUCER_ID"):
        kafka.faults.errors(api, "NONE", times=0)
