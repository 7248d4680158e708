"""A Kafka client, asynchronous and blocking. What is named here is public; docs/client.md explains it.

Nothing is imported before it is used: most users need one or two of these. Type checkers read the imports.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.client.admin import Admin
    from odradek.client.blocking import (
        BlockingClient,
        BlockingConsumer,
        BlockingProducer,
        BlockingTransactionalProducer,
    )
    from odradek.client.client import Client
    from odradek.client.consumer import Consumer
    from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
    from odradek.client.partition_reader import ConsumerRecord
    from odradek.client.producer import Producer
    from odradek.client.sender import Delivery
    from odradek.client.transaction_errors import AbortableError, FatalError, OutcomeUnknownError
    from odradek.client.transaction_requests import GroupMetadata
    from odradek.client.transaction_states import State
    from odradek.client.transactional import PreparedTransaction, TransactionalProducer

__all__ = [
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "AbortableError",
    "Admin",
    "BlockingClient",
    "BlockingConsumer",
    "BlockingProducer",
    "BlockingTransactionalProducer",
    "Client",
    "Consumer",
    "ConsumerRecord",
    "Delivery",
    "FatalError",
    "GroupMetadata",
    "OutcomeUnknownError",
    "PreparedTransaction",
    "Producer",
    "State",
    "TransactionalProducer",
]

_HOMES = {
    "Client": "client",
    "BlockingClient": "blocking",
    "BlockingConsumer": "blocking",
    "BlockingProducer": "blocking",
    "BlockingTransactionalProducer": "blocking",
    "Producer": "producer",
    "Delivery": "sender",
    "TransactionalProducer": "transactional",
    "PreparedTransaction": "transactional",
    "GroupMetadata": "transaction_requests",
    "State": "transaction_states",
    "AbortableError": "transaction_errors",
    "FatalError": "transaction_errors",
    "OutcomeUnknownError": "transaction_errors",
    "Consumer": "consumer",
    "ConsumerRecord": "partition_reader",
    "READ_COMMITTED": "fetching",
    "READ_UNCOMMITTED": "fetching",
    "Admin": "admin",
}

if not TYPE_CHECKING:  # with it in sight, every misspelt name would be an object

    def __getattr__(name):
        if name in _HOMES:
            from importlib import import_module

            return getattr(import_module(f"odradek.client.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
