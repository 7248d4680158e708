"""What the scenarios share: one conversation per served API, held at each of its versions.

A scenario is a generator of requests, in fields of every version; names that differ from run to run come
from its World. What the broker answers is compared elsewhere (test_versions.py).
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.batches import batch
from tests.support.group import Member
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import topic_id
from tests.support.topics import create_topic
from tests.support.transactions import TransactionalProducer

BASE_MS = 1_700_000_000_000
STRANGER = uuid.UUID(int=0x5EED)


class World:
    """What a scenario may lean on: a topic of two partitions with three records in the first, and a group."""

    def __init__(self, bootstrap: str, unique: Callable[[str], str]) -> None:
        self.bootstrap = bootstrap
        self.topic, self.other, self.group = unique("topic"), unique("other"), unique("group")
        self.txn = unique("txn")
        self.connection: Connection | None = None
        """By which the conversation is to be held, where it has to be one that something else was said by."""
        create_topic(bootstrap, self.topic, 2)
        with Connection(bootstrap) as connection:
            self.topic_id = topic_id(connection, self.topic)
            for i in range(3):
                produce(connection, self.topic, batch([b"value"], key=b"key", timestamp=BASE_MS + i))
            self.node_id = connection.call(3, 1, {"topics": []}).brokers[0].node_id
        self.unique = unique

    def log_dir(self) -> str:
        """A log directory of the broker."""
        with Connection(self.bootstrap) as connection:
            path: str = connection.call(35, 4, {"topics": []}).results[0].log_dir
        return path

    def member(self, **options: Any) -> Member:
        return Member(self.bootstrap, self.group, **options)

    def producer(self, suffix: str = "", **options: Any) -> TransactionalProducer:
        return TransactionalProducer(self.bootstrap, self.txn + suffix, **options)

    def second_producer(self, **options: Any) -> TransactionalProducer:
        """One that took the transactional id from another: there is an epoch before its own."""
        producer = self.producer(**options)
        producer.init()
        producer.init()
        return producer


Scenario = Callable[[World, int], Iterator[dict[str, Any]]]
SCENARIOS: dict[int, Scenario] = {}


def scenario(api_key: int) -> Callable[[Scenario], Scenario]:
    def register(function: Scenario) -> Scenario:
        SCENARIOS[api_key] = function
        return function

    return register
