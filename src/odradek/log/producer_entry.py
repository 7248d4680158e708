"""What a partition remembers of one producer: epoch, last five batches, open transaction. Pure."""

from typing import Final, NamedTuple

from odradek.core.types import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from odradek.records.header import MAX_INT32

BATCHES_TO_RETAIN: Final = 5
NO_COORDINATOR_EPOCH: Final = -1


class ProducerBatch(NamedTuple):
    """A batch as its producer numbered it and as the log placed it."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_INT32

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int = NO_OFFSET,
        batches: list[ProducerBatch] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches = [] if batches is None else batches

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last offset of the newest batch of data; NO_OFFSET where only markers are known."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(
        self, producer_epoch: int, first_sequence: int, last_sequence: int
    ) -> ProducerBatch | None:
        if producer_epoch == self.producer_epoch:
            for batch in self.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                    return batch
        return None

    def set_epoch(self, producer_epoch: int) -> None:
        """Take an epoch; a new one numbers its batches from the beginning."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches = []

    def add_batch(self, batch: ProducerBatch) -> None:
        batches = self.batches
        if len(batches) == BATCHES_TO_RETAIN:
            del batches[0]
        batches.append(batch)
        self.last_timestamp = batch.timestamp

    def copy(self) -> "ProducerEntry":
        return ProducerEntry(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
            self.batches.copy(),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerEntry) and all(
            getattr(self, name) == getattr(other, name) for name in ProducerEntry.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"ProducerEntry({', '.join(f'{name}={getattr(self, name)}' for name in ProducerEntry.__slots__)})"
        )
