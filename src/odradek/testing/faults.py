"""What a test can do to the broker it runs on: errors in place of answers, a broker that is down."""

import contextlib
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode
from odradek.testing.tracebacks import blames_the_caller
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.testing.broker import Broker


class Faults:
    """Faults of one test; whatever of them is left is taken back when it ends."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    @blames_the_caller
    def errors(self, api: str, error: str, times: int = 1) -> None:
        """Answer the next requests of an API with an error: `errors("Produce", "NOT_LEADER_OR_FOLLOWER")`."""
        key = _api_key(api)
        try:
            code = ErrorCode[error]
        except KeyError:
            meant = _suggestion(error.upper(), (code.name for code in ErrorCode))
            raise ValueError(f"{error!r} is not the name of a Kafka error{meant}") from None
        self._broker.look(lambda node: node.faults.plant(key, code, times))

    @blames_the_caller
    def broker_down(self, leader_of: str | None = None) -> contextlib.AbstractContextManager[None]:
        """The broker is stopped inside the block and started again after it, with its address and data.

        `leader_of` names a partition whose leader is meant; with one broker it leads them all.
        """
        if leader_of is not None:
            topic, _, index = leader_of.rpartition("-")
            led = self._broker.look(
                lambda node: any(
                    str(tp) == leader_of and p.is_leader for tp, p in node.replicas.partitions.items()
                )
            )
            if not led:
                raise ValueError(f"no broker leads partition {index} of topic {topic!r}")
        return self._down()

    @contextlib.contextmanager
    def _down(self) -> Iterator[None]:
        self._broker.stop()
        try:
            yield
        finally:
            self._broker.start()


def _api_key(api: str) -> ApiKey:
    names = {"".join(word.capitalize() for word in key.name.split("_")): key for key in ApiKey}
    asked = api.replace("_", "").lower()
    for name, key in names.items():
        if name.lower() == asked:
            return key
    raise ValueError(f"{api!r} is not the name of a Kafka API{_suggestion(api, names)}")


def _suggestion(name: str, names: Iterable[str]) -> str:
    close = get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]}?" if close else ""


class TestClock:
    """The broker's time."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    @blames_the_caller
    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Let the broker's time pass at once: its timeouts and its retention run, the test does not wait."""
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds + ms / 1000
        if total < 0:
            raise ValueError("time cannot go back")
        self._broker.advance(total)
