"""One partition being read: the position in it, and what was fetched and not yet handed out. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from odradek.client.visibility import visible_records
from odradek.core.types import Buffer, TopicPartition
from odradek.records.batch import BatchMeta, Headers, Record


class ConsumerRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int


class PartitionReader:
    """`position` is the offset of the next record, None until it has been found out.

    `reset_to` is the time to look for after the position turned out not to exist.
    """

    __slots__ = ("_fetched", "high_watermark", "last_stable_offset", "position", "reset_to", "tp")

    def __init__(self, tp: TopicPartition, position: int | None) -> None:
        self.tp = tp
        self.position = position
        self.reset_to: int | None = None
        self.high_watermark = -1
        self.last_stable_offset = -1
        self._fetched: Iterator[tuple[BatchMeta, Record | None]] | None = None

    @property
    def wants_data(self) -> bool:
        return self._fetched is None and self.position is not None

    def seek(self, offset: int) -> None:
        self.position = offset
        self._fetched = None

    def feed(self, data: Buffer, aborted: Sequence[tuple[int, int]] | None) -> None:
        """Bytes fetched at the position; with the aborted transactions in them at read_committed."""
        assert self._fetched is None
        assert self.position is not None
        self._fetched = visible_records(data, self.position, aborted)

    def take(self, count: int) -> list[ConsumerRecord]:
        """At most this many of the fetched records. The position also moves past records that are not
        shown."""
        out: list[ConsumerRecord] = []
        if self._fetched is None:
            return out
        assert self.position is not None
        topic, partition = self.tp
        while len(out) < count:
            found = next(self._fetched, None)
            if found is None:
                self._fetched = None
                break
            batch, record = found
            if record is None:
                self.position = max(self.position, batch.last_offset + 1)
                continue
            self.position = record.offset + 1
            out.append(
                ConsumerRecord(
                    topic,
                    partition,
                    record.offset,
                    record.timestamp,
                    batch.timestamp_type,
                    record.key,
                    record.value,
                    record.headers,
                    batch.partition_leader_epoch,
                )
            )
        return out
