"""ProducerEntry: the state of one producer in a partition: epoch, last five batches, open transaction.
Pure."""

from typing import Final, NamedTuple

from odradek.core.types import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from odradek.records.header import MAX_INT32

BATCHES_TO_RETAIN: Final = 5
NO_COORDINATOR_EPOCH: Final = -1


class ProducerBatch(NamedTuple):
    """The sequence numbers and offsets of a batch."""

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


class ProducerEntry(NamedTuple):
    """Immutable: an append makes a new entry, which takes effect when its bytes are written."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int = NO_OFFSET
    batches: tuple[ProducerBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last offset of the newest data batch; NO_OFFSET if only markers are known."""
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
