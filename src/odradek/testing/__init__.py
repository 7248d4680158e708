"""Brokers for tests: the pytest plugin; `Broker` and `Cluster` for everything that is not pytest.

Importing this package costs nothing: pytest loads it in every run, whether Kafka is used or not. `Kafka` and
`KafkaServer` are what the fixtures give, for annotations. Type checkers read the imports.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.testing.broker import Broker
    from odradek.testing.cluster import Cluster
    from odradek.testing.kafka import Kafka
    from odradek.testing.server import KafkaServer

__all__ = ["Broker", "Cluster", "Kafka", "KafkaServer"]

_HOMES = {"Broker": "broker", "Cluster": "cluster", "Kafka": "kafka", "KafkaServer": "server"}

if not TYPE_CHECKING:  # with it in sight, every misspelt name would be an object

    def __getattr__(name):
        if name in _HOMES:
            from importlib import import_module

            return getattr(import_module(f"odradek.testing.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
