"""An abort of a transaction whose first write never came: refused, it ends a producer of librdkafka.

Not part of `make judge`: Apache Kafka refuses it (docs/compatibility.md).
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from odradek.core.errors import ErrorCode
from odradek.testing.broker import Broker
from tests.support.raw import Connection
from tests.support.topics import create_topic
from tests.support.transactions import TransactionalProducer

TRANSACTIONS = 150


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        create_topic(broker.bootstrap_servers, "t", 3, {})
        yield broker.bootstrap_servers


def producer(bootstrap: str, name: str) -> TransactionalProducer:
    made = TransactionalProducer(bootstrap, name, epoch_per_transaction=False)
    made.init()
    return made


def test_an_abort_of_nothing_is_answered_by_the_connection_that_acknowledged_the_commit(
    bootstrap: str,
) -> None:
    with producer(bootstrap, "same") as p:
        p.run("t", b"one")
        assert p.end(commit=False) == ErrorCode.NONE
        assert p.settle() == "CompleteCommit"
        p.run("t", b"two", commit=False)
        p.run("t", b"three")
        assert p.end(commit=False) == ErrorCode.NONE


def test_an_abort_by_a_new_connection_is_refused_after_a_commit(bootstrap: str) -> None:
    """The answer to the commit may have been lost with the old one."""
    with producer(bootstrap, "reconnects") as p:
        p.run("t", b"one")
        p.connection.close()
        p.connection = Connection(bootstrap)
        assert p.end(commit=False) == ErrorCode.INVALID_TXN_STATE
        # Told once more that it is committed, it may go on.
        assert p.end(commit=True) == ErrorCode.NONE
        assert p.end(commit=False) == ErrorCode.NONE


def test_an_abort_of_another_producer_on_the_same_connection_is_refused(bootstrap: str) -> None:
    with producer(bootstrap, "first") as first, producer(bootstrap, "second") as second:
        first.run("t", b"one")
        second.run("t", b"two")
        first.connection.close()
        first.connection = second.connection
        assert first.end(commit=False) == ErrorCode.INVALID_TXN_STATE
        assert second.end(commit=False) == ErrorCode.NONE


def test_librdkafka_survives_aborts_of_transactions_that_hardly_began(bootstrap: str) -> None:
    client = Producer({"bootstrap.servers": bootstrap, "transactional.id": "hasty", "linger.ms": 0})
    client.init_transactions(20)
    for number in range(TRANSACTIONS):
        client.begin_transaction()
        client.produce("t", str(number).encode(), partition=0)
        client.commit_transaction(20)
        client.begin_transaction()
        for partition in range(3):
            client.produce("t", b"never", partition=partition)
        client.poll(0.0005 * (number % 5))
        try:
            client.abort_transaction(20)
        except KafkaException as e:
            error = e.args[0]
            assert isinstance(error, KafkaError)
            pytest.fail(f"transaction {number}: {error}, fatal: {error.fatal()}")
