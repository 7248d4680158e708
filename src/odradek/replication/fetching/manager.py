"""FetcherManager: which fetcher fetches which partition.

Every leader has up to num.replica.fetchers fetchers, which share its partitions. A fetcher begins with its
first partition and ends after its last one. No connections here: `start` gives a fetcher its own.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from odradek.core.types import TopicPartition, java_hash
from odradek.replication.fetching.fetcher import Fetcher
from odradek.replication.fetching.partitions import FetchedPartition
from odradek.replication.fetching.requests import FetchLimits
from odradek.replication.follower import PartitionFollower
from odradek.runtime.slices import FEW, Paced


class FetcherSettings(NamedTuple):
    """num.replica.fetchers, replica.fetch.*."""

    fetchers: int = 1
    limits: FetchLimits = FetchLimits(500, 1, 10 << 20, 1 << 20)
    backoff_ms: int = 1_000


DEFAULT_SETTINGS = FetcherSettings()


class RunningFetcher(Protocol):
    """A fetcher with its connection."""

    def wake(self) -> None:
        """Its partitions changed: ask if nothing is in flight."""
        ...

    def close(self) -> None: ...


class NotRunning:
    """A fetcher that asks nobody."""

    def wake(self) -> None: ...
    def close(self) -> None: ...


class _Kept(NamedTuple):
    fetcher: Fetcher
    running: RunningFetcher


FetcherKey = tuple[int, int]
"""Leader and index."""


class FetcherManager:
    """`add` and `remove` change what is fetched; `wake` begins with it."""

    def __init__(
        self,
        settings: FetcherSettings = DEFAULT_SETTINGS,
        start: Callable[[Fetcher], RunningFetcher] = lambda fetcher: NotRunning(),
    ) -> None:
        self._settings = settings
        self._start = start
        self._fetchers: dict[FetcherKey, _Kept] = {}
        self._fetched_by: dict[TopicPartition, tuple[FetcherKey, FetchedPartition]] = {}
        self._touched: dict[FetcherKey, None] = {}
        self._is_closed = False

    def add(self, topic_id: bytes, follower: PartitionFollower) -> None:
        """Fetch a partition from its leader, at its leader epoch, from its log end."""
        tp = follower.log.topic_partition
        self.remove(tp)
        if self._is_closed:
            return
        key = follower.leader_id, self._index_of(tp)
        kept = self._fetchers.get(key)
        if kept is None:
            fetcher = Fetcher(*key, self._settings.limits, self._settings.backoff_ms)
            kept = self._fetchers[key] = _Kept(fetcher, self._start(fetcher))
        partition = FetchedPartition((topic_id, tp.partition), follower)
        kept.fetcher.add(partition)
        self._fetched_by[tp] = key, partition
        self._touched[key] = None

    def remove(self, tp: TopicPartition) -> None:
        """Fetch a partition no more. An answer that is on its way is dropped."""
        found = self._fetched_by.pop(tp, None)
        if found is not None:
            key, partition = found
            self._fetchers[key].fetcher.remove(partition.key)
            self._touched[key] = None

    def wake(self) -> None:
        """Ask for what was added. Fetchers without partitions end."""
        touched, self._touched = self._touched, {}
        for key in touched:
            kept = self._fetchers[key]
            if kept.fetcher.partitions:
                kept.running.wake()
            else:
                del self._fetchers[key]
                kept.running.close()

    def settled(self, tp: TopicPartition) -> None:
        """A flush of a partition has ended that its fetcher may wait for."""
        found = self._fetched_by.get(tp)
        if found is not None:
            self._fetchers[found[0]].running.wake()

    def resize(self, fetchers: int) -> Paced[None]:
        """Apply another num.replica.fetchers: partitions move to other fetchers."""
        if fetchers == self._settings.fetchers:
            return
        self._settings = self._settings._replace(fetchers=fetchers)
        for tp, (key, partition) in list(self._fetched_by.items()):
            if key[1] != self._index_of(tp) and self._fetched_by.get(tp, (None, None))[1] is partition:
                self.add(partition.key[0], partition.follower)
            yield FEW
        self.wake()

    def fetcher_of(self, tp: TopicPartition) -> FetcherKey | None:
        """The fetcher of a partition."""
        found = self._fetched_by.get(tp)
        return None if found is None else found[0]

    def close(self) -> None:
        """End all fetchers. Nothing is fetched any more."""
        self._is_closed = True
        kept, self._fetchers = self._fetchers, {}
        self._fetched_by.clear()
        self._touched.clear()
        for fetcher, running in kept.values():
            fetcher.partitions.clear()  # an answer that is being applied ends here
            running.close()

    def _index_of(self, tp: TopicPartition) -> int:
        h = (31 * java_hash(tp.topic) + tp.partition) & 0x7FFFFFFF
        return h % self._settings.fetchers
