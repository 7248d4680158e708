"""What a test can do to its brokers: errors in place of answers, brokers that are down, paused, cut off."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode
from odradek.testing.tracebacks import blames_the_caller
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.testing.cluster import Cluster


class Faults:
    """Faults of one test; whatever of them is left is taken back when it ends."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    @blames_the_caller
    def errors(self, api: str, error: str, times: int = 1) -> None:
        """Answer the next requests of an API with an error: `errors("Produce", "NOT_LEADER_OR_FOLLOWER")`."""
        key = _api_key(api)
        try:
            code = ErrorCode[error]
        except KeyError:
            meant = _suggestion(error.upper(), (code.name for code in ErrorCode))
            raise ValueError(f"{error!r} is not the name of a Kafka error{meant}") from None
        self._cluster.errors.plant(key, code, times)

    @blames_the_caller
    def broker_down(
        self, broker: int | None = None, *, leader_of: str | tuple[str, int] | None = None
    ) -> AbstractContextManager[None]:
        """A broker is stopped inside the block and started again after it, with its address and data. If its
        partitions have more replicas, others are elected.

        `leader_of` names a partition whose leader is meant: `(topic, 2)` or `"orders-2"`, and of a topic
        alone its first one. One broker alone need not be named.
        """
        if broker is not None and leader_of is not None:
            raise ValueError("give a broker, or leader_of, but not both")
        return self._cluster.down(self._known(broker) if leader_of is None else self._leader_of(leader_of))

    @blames_the_caller
    def paused(self, broker: int | None = None) -> AbstractContextManager[None]:
        """A broker stands still inside the block, as a stopped process does: it takes connections, and
        answers nobody. One broker alone need not be named."""
        return self._cluster.paused(self._known(broker))

    @blames_the_caller
    def partitioned(self, a: int, b: int) -> AbstractContextManager[None]:
        """Two brokers do not reach each other inside the block; what they send waits. Clients reach both."""
        if len(self._cluster.brokers) == 1:
            raise ValueError("one broker alone cannot be partitioned; use @pytest.mark.kafka(brokers=3)")
        if self._known(a) == self._known(b):
            raise ValueError(f"broker {a} cannot be cut off from itself; give two brokers")
        return self._cluster.partitioned(a, b)

    def _leader_of(self, named: str | tuple[str, int]) -> int:
        topic, partition = self._cluster.partition_named(named)
        leader = self._cluster.leader_of((topic, partition))
        if leader is None:
            raise ValueError(f"no broker leads partition {partition} of topic {topic!r}")
        return leader

    def _known(self, broker: int | None) -> int:
        ids = list(self._cluster.brokers)
        if broker is None and len(ids) == 1:
            return ids[0]
        names = ", ".join(map(str, ids))
        if broker is None:
            raise ValueError(f"which broker? There are {names}")
        if type(broker) is not int or broker not in ids:
            there = f"the only one is {names}" if len(ids) == 1 else f"there are {names}"
            raise ValueError(f"there is no broker {broker!r}; {there}")
        return broker


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
    """The time of the brokers."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    @blames_the_caller
    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Let the broker's time pass at once: its timeouts and its retention run, the test does not wait."""
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds + ms / 1000
        if total < 0:
            raise ValueError("time cannot go back")
        self._cluster.advance(total)
