"""A broker for tests: the pytest plugin, and `Broker` for everything that is not pytest.

Importing this package costs nothing: pytest loads it in every run, whether Kafka is used or not.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.testing.broker import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from odradek.testing.broker import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
