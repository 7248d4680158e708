"""What a partition accepts from producers that number their batches: epochs, sequences, transactions. Pure.

The functions look first and change afterwards: an entry that refuses a batch is as it was.
"""

import logging
from typing import Final

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_OFFSET, NO_PRODUCER_EPOCH
from odradek.log.producer_entry import ProducerBatch, ProducerEntry
from odradek.records.check import Origin
from odradek.records.control import EndTransactionMarker
from odradek.records.header import MAX_INT32, BatchMeta

_log = logging.getLogger(__name__)

EPOCH_PER_TRANSACTION: Final = 2
"""From this transaction version on every transaction has an epoch of its own (KIP-890)."""
_LAST_PRODUCER_EPOCH: Final = 0x7FFF


def append_data(entry: ProducerEntry, batch: BatchMeta, base_offset: int, origin: Origin | None) -> bool:
    """Take a batch of data at an offset; True when it begins a transaction. No origin: it is replayed."""
    epoch = batch.producer_epoch
    if epoch < entry.producer_epoch:
        _refuse_epoch(entry, epoch, base_offset, origin, "smaller than")
    if origin is Origin.CLIENT:
        _check_sequence(entry, epoch, batch.base_sequence, base_offset)
    transactional = batch.is_transactional
    open_since = entry.current_txn_first_offset
    if open_since != NO_OFFSET and not transactional and origin is not None:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Expected transactional write from producer {entry.producer_id}, in one since {open_since}.",
        )
    entry.set_epoch(epoch)
    entry.add_batch(
        ProducerBatch(
            batch.last_sequence,
            base_offset + batch.last_offset_delta,
            batch.last_offset_delta,
            batch.max_timestamp,
        )
    )
    if transactional and open_since == NO_OFFSET:
        entry.current_txn_first_offset = base_offset
        return True
    return False


def _check_sequence(entry: ProducerEntry, epoch: int, first_sequence: int, offset: int) -> None:
    """A producer that is not known, or whose records are all gone, may begin anywhere."""
    known_epoch = entry.producer_epoch
    if known_epoch == NO_PRODUCER_EPOCH:
        return
    if epoch != known_epoch:
        if first_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {entry.producer_id} at offset {offset}: "
                f"{epoch} (request epoch), {first_sequence} (seq. number), {known_epoch} (current epoch)",
            )
        return
    last_sequence = entry.last_sequence
    if first_sequence != (last_sequence + 1) & MAX_INT32:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {entry.producer_id} at offset {offset}: "
            f"{first_sequence} (incoming seq. number), {last_sequence} (current end sequence number)",
        )


def append_marker(
    entry: ProducerEntry,
    batch: BatchMeta,
    marker: EndTransactionMarker,
    timestamp: int,
    offset: int,
    origin: Origin | None,
    transaction_version: int,
) -> int:
    """Take the end of a transaction; the offset where it began, NO_OFFSET where none was open."""
    epoch, known_epoch = batch.producer_epoch, entry.producer_epoch
    if origin is None or transaction_version < EPOCH_PER_TRANSACTION:
        if epoch < known_epoch:
            _refuse_epoch(entry, epoch, offset, origin, "smaller than")
    elif epoch <= known_epoch:
        ended = entry.current_txn_first_offset == NO_OFFSET or epoch == _LAST_PRODUCER_EPOCH
        if epoch < known_epoch or not ended:
            _refuse_epoch(entry, epoch, offset, origin, "not greater than")
        _log.info("Producer %d repeats the marker of epoch %d, already ended", entry.producer_id, epoch)
    if marker.coordinator_epoch < entry.coordinator_epoch:
        message = (
            f"Invalid coordinator epoch for producer {entry.producer_id} at offset {offset}: "
            f"{marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)"
        )
        if origin is not None:
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message)
        _log.info("%s", message)
    first_offset = entry.current_txn_first_offset
    entry.set_epoch(epoch)
    entry.coordinator_epoch = marker.coordinator_epoch
    entry.last_timestamp = timestamp
    entry.current_txn_first_offset = NO_OFFSET
    return first_offset


def _refuse_epoch(entry: ProducerEntry, epoch: int, offset: int, origin: Origin | None, how: str) -> None:
    message = (
        f"Epoch of producer {entry.producer_id} at offset {offset} is {epoch}, "
        f"which is {how} the last seen epoch {entry.producer_epoch}"
    )
    if origin is not None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, message)
    _log.warning("%s", message)
