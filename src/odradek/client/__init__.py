"""A Kafka client, asynchronous and blocking. What is named here is public; docs/client.md explains it.

Nothing is imported before it is used: most users need one or two of these.
"""

from importlib import import_module

_HOMES = {
    "Client": "client",
    "BlockingClient": "blocking",
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
    "READ_COMMITTED": "consumer",
    "READ_UNCOMMITTED": "consumer",
    "Admin": "admin",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"odradek.client.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
