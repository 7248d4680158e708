"""A fetcher of followers on real logs, and a leader whose answers the test writes."""

from pathlib import Path

from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.replication.fetching.fetcher import Fetcher, FetchRequest, OffsetsRequest
from odradek.replication.fetching.partitions import FetchedPartition
from odradek.replication.fetching.requests import FetchLimits
from odradek.replication.fetching.responses import FetchAnswer, PartitionData, PartitionKey
from odradek.replication.follower import PartitionFollower
from odradek.runtime.slices import at_once
from odradek.wire.fetch import _PARTITION, FetchPartition
from tests.unit.log.support import LogRuntime, batch, config

LEADER, EPOCH, SESSION = 2, 5, 41
BACKOFF_MS = 1_000
TOPIC_ID = bytes(range(16))


def follower_of(path: Path, index: int = 0, *, epoch: int = EPOCH, **changes: object) -> PartitionFollower:
    """On a new log, or on the one that is there."""
    path.mkdir(exist_ok=True)
    tp = TopicPartition("orders", index)
    log = Log.open(LogRuntime(), str(path / str(tp)), tp, None, config(**changes))
    log.settling.on_flush_due = lambda tp: None
    return PartitionFollower(log, LEADER, epoch)


def batches(base_offset: int, count: int = 1, epoch: int = EPOCH, value: bytes = b"value") -> bytes:
    """One batch as a leader stored it."""
    return bytes(batch(count, value=value, base_offset=base_offset, leader_epoch=epoch).buffer)


def key_of(index: int = 0) -> PartitionKey:
    return TOPIC_ID, index


class Stage:
    """A fetcher and its time."""

    def __init__(self, *followers: PartitionFollower) -> None:
        self.now_ms = 1_000_000
        self.fetcher = Fetcher(LEADER, 0, FetchLimits(500, 1, 10 << 20, 1 << 20), BACKOFF_MS)
        for follower in followers:
            self.add(follower)

    def add(self, follower: PartitionFollower) -> None:
        index = follower.log.topic_partition.partition
        self.fetcher.add(FetchedPartition(key_of(index), follower))

    def ask(self) -> FetchRequest | OffsetsRequest | None:
        return at_once(self.fetcher.next_request(self.now_ms))

    def ask_fetch(self) -> FetchRequest:
        request = self.ask()
        assert isinstance(request, FetchRequest), request
        return request

    def ask_offsets(self) -> OffsetsRequest:
        request = self.ask()
        assert isinstance(request, OffsetsRequest), request
        return request

    def asked(self) -> dict[int, tuple[int, int, int]]:
        """(leader epoch, fetch offset, last fetched epoch) of the partitions that the next fetch names."""
        return named(self.ask_fetch())

    def answer(self, *partitions: PartitionData, error: int = 0, session: int = SESSION) -> None:
        at_once(self.fetcher.fetched(FetchAnswer(error, session, list(partitions)), self.now_ms))


def named(request: FetchRequest) -> dict[int, tuple[int, int, int]]:
    rows = [FetchPartition(*_PARTITION.unpack_from(entry)) for entry in request.topics.get(TOPIC_ID, ())]
    return {
        row.partition_index: (row.current_leader_epoch, row.fetch_offset, row.last_fetched_epoch)
        for row in rows
    }


def data(
    index: int = 0,
    records: bytes | None = None,
    *,
    error: int = 0,
    high_watermark: int = 0,
    log_start: int = 0,
    diverging: tuple[int, int] | None = None,
) -> PartitionData:
    view = None if records is None else memoryview(records)
    return PartitionData(key_of(index), error, high_watermark, log_start, diverging, view)
