"""The rules for batches of idempotent producers: epochs, sequences, transactions. Pure.

An origin of None means a replicated or replayed batch: it was accepted before, so it is not refused.
"""

import logging
from enum import IntEnum
from typing import Final, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE
from odradek.log.producers.entry import BATCHES_TO_RETAIN, ProducerBatch, ProducerEntry
from odradek.records.control import EndTransactionMarker
from odradek.records.header import MAX_INT32, TRANSACTIONAL_FLAG, BatchMeta

_log = logging.getLogger(__name__)
_new = tuple.__new__

EPOCH_PER_TRANSACTION: Final = 2
"""Since this transaction version every transaction has its own epoch (KIP-890)."""
_LAST_PRODUCER_EPOCH: Final = 0x7FFF


class AppendOrigin(IntEnum):
    """Who appends. Clients are checked most."""

    CLIENT = 0
    COORDINATOR = 1


class ExpectedStart(NamedTuple):
    """The epoch and sequence that the first batch of an unknown producer must have."""

    epoch: int
    sequence: int


def check_start(batch: BatchMeta, start: ExpectedStart) -> None:
    """Refuse a batch that would overtake an earlier one of its transaction, which was refused and may be
    retried."""
    if batch.producer_epoch == start.epoch and batch.base_sequence > start.sequence:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {batch.producer_id}: {batch.base_sequence} (incoming "
            f"seq. number), {start.sequence} (expected first)",
        )


def append_data(
    entry: ProducerEntry, batch: BatchMeta, base_offset: int, origin: AppendOrigin | None
) -> ProducerEntry:
    """The producer after a data batch at an offset. Raises KafkaError to refuse the batch."""
    producer_id, known_epoch, coordinator_epoch, _, txn_first_offset, batches = entry
    epoch, first_sequence, delta = batch.producer_epoch, batch.base_sequence, batch.last_offset_delta
    if epoch != known_epoch:
        if epoch < known_epoch:
            _refuse_epoch(entry, epoch, base_offset, origin, "smaller than")
        if origin is AppendOrigin.CLIENT:
            _check_new_epoch(entry, epoch, first_sequence, base_offset)
        batches = ()
    elif origin is AppendOrigin.CLIENT:
        last_sequence = batches[-1].last_sequence if batches else NO_SEQUENCE
        if first_sequence != (last_sequence + 1) & MAX_INT32:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id} at offset {base_offset}: "
                f"{first_sequence} (incoming seq. number), {last_sequence} (current end sequence number)",
            )
    if batch.attributes & TRANSACTIONAL_FLAG:
        if txn_first_offset == NO_OFFSET:
            txn_first_offset = base_offset
    elif txn_first_offset != NO_OFFSET and origin is not None:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Expected transactional write from producer {producer_id}: its transaction is open since "
            f"{txn_first_offset}.",
        )
    timestamp = batch.max_timestamp
    last_sequence = NO_SEQUENCE if first_sequence == NO_SEQUENCE else (first_sequence + delta) & MAX_INT32
    added = _new(ProducerBatch, (last_sequence, base_offset + delta, delta, timestamp))
    batches = (*(batches[1:] if len(batches) == BATCHES_TO_RETAIN else batches), added)
    return _new(ProducerEntry, (producer_id, epoch, coordinator_epoch, timestamp, txn_first_offset, batches))


def _check_new_epoch(entry: ProducerEntry, epoch: int, first_sequence: int, offset: int) -> None:
    """A new epoch must start at sequence 0. A producer without an entry may start at any sequence."""
    if first_sequence != 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Invalid sequence number for new epoch of producer {entry.producer_id} at offset {offset}: "
            f"{epoch} (request epoch), {first_sequence} (seq. number), {entry.producer_epoch} (current)",
        )


def append_marker(
    entry: ProducerEntry,
    batch: BatchMeta,
    marker: EndTransactionMarker,
    timestamp: int,
    offset: int,
    origin: AppendOrigin | None,
    transaction_version: int,
) -> ProducerEntry:
    """The producer after the end of its transaction. Raises KafkaError to refuse the marker."""
    epoch, known_epoch = batch.producer_epoch, entry.producer_epoch
    if origin is None or transaction_version < EPOCH_PER_TRANSACTION:
        if epoch < known_epoch:
            _refuse_epoch(entry, epoch, offset, origin, "smaller than")
    elif epoch <= known_epoch:
        ended = entry.current_txn_first_offset == NO_OFFSET or epoch == _LAST_PRODUCER_EPOCH
        if epoch < known_epoch or not ended:
            _refuse_epoch(entry, epoch, offset, origin, "not greater than")
        _log.info(
            "Producer %d: repeated marker of epoch %d, whose transaction has ended", entry.producer_id, epoch
        )
    if marker.coordinator_epoch < entry.coordinator_epoch:
        message = (
            f"Invalid coordinator epoch for producer {entry.producer_id} at offset {offset}: "
            f"{marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)"
        )
        if origin is not None:
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message)
        _log.info("%s", message)
    return ProducerEntry(
        entry.producer_id,
        epoch,
        marker.coordinator_epoch,
        timestamp,
        NO_OFFSET,
        entry.batches if epoch == known_epoch else (),
    )


def _refuse_epoch(
    entry: ProducerEntry, epoch: int, offset: int, origin: AppendOrigin | None, how: str
) -> None:
    message = (
        f"Epoch of producer {entry.producer_id} at offset {offset} is {epoch}, "
        f"which is {how} the last seen epoch {entry.producer_epoch}"
    )
    if origin is not None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, message)
    _log.warning("%s", message)
