"""Encodes and decodes the records of `__transaction_state`."""

import logging
import struct
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import attrgetter

from odradek.coordinators.records import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
    decode_transaction_record,
    decode_value_in_slices,
    encode_key,
    encode_value,
    encode_value_in_slices,
)
from odradek.coordinators.shard import Encoded, Record, RecordFormat
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ProtocolError
from odradek.core.types import TopicPartition
from odradek.runtime.slices import FEW, STEP, Paced, at_once

_log = logging.getLogger(__name__)

_VERSION = struct.Struct(">h")
_NEWEST_VERSION = 1
_WITHOUT_PARTITIONS = frozenset({TxnState.EMPTY, TxnState.DEAD})
_AT_ONCE = 32  # partitions made in one step
_PARTITION_CALLS = 2


def record_format(value_version: Callable[[], int]) -> RecordFormat:
    """`value_version` is the version of values for the cluster's transaction version."""
    return RecordFormat(
        partial(encode, value_version), decode, partial(encode_in_slices, value_version), decode_in_slices
    )


def encode(value_version: Callable[[], int], record: Record) -> Encoded:
    """The key is a transactional id, the value its metadata."""
    transactional_id, txn = record
    key = encode_key(TransactionLogKey(transactional_id=transactional_id))
    return key, None if txn is None else encode_value(at_once(_value(txn)), value_version())


def encode_in_slices(value_version: Callable[[], int], record: Record) -> Paced[Encoded]:
    """`encode` in slices, for a transaction with many partitions."""
    transactional_id, txn = record
    assert txn is not None
    key = encode_key(TransactionLogKey(transactional_id=transactional_id))
    value = yield from _value(txn)
    return key, (yield from encode_value_in_slices(value, value_version()))


def decode(key: bytes | None, value: bytes | None) -> Record | None:
    """None for a record of a newer version. Raises ProtocolError."""
    if key is None:
        raise ProtocolError("a record of __transaction_state has no key")
    if _is_newer(value):
        return None
    decoded = decode_transaction_record(key, value)
    if decoded is None:
        return None
    name, found = decoded
    assert isinstance(name, TransactionLogKey)
    if found is None:
        return name.transactional_id, None
    assert isinstance(found, TransactionLogValue)
    return name.transactional_id, at_once(_metadata(name.transactional_id, found))


def decode_in_slices(key: bytes | None, value: bytes) -> Paced[Record | None]:
    """`decode` in slices, for a long value."""
    named = None if _is_newer(value) else decode(key, None)
    if named is None:
        return None
    found = yield from decode_value_in_slices(TransactionLogValue, value)
    assert isinstance(found, TransactionLogValue)
    return named[0], (yield from _metadata(named[0], found))


def _is_newer(value: bytes | None) -> bool:
    if value is None or len(value) < _VERSION.size:
        return False
    (version,) = _VERSION.unpack_from(value)
    if version > _NEWEST_VERSION:
        _log.warning("Ignoring a transaction log value of unknown version %d", version)
        return True
    return False


def _value(txn: TransactionMetadata) -> Paced[TransactionLogValue]:
    partitions = None
    if txn.state not in _WITHOUT_PARTITIONS:
        partitions = []
        for topic, group in groupby(sorted(txn.partitions), key=attrgetter("topic")):
            ids = [tp.partition for tp in group]
            partitions.append(TransactionPartitions(topic=topic, partition_ids=ids))
            yield STEP + len(ids) // _AT_ONCE
    return TransactionLogValue(
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_status=txn.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=txn.last_update_ms,
        transaction_start_timestamp_ms=txn.start_ms,
        previous_producer_id=txn.prev_producer_id,
        next_producer_id=txn.next_producer_id,
        client_transaction_version=txn.client_version,
        next_producer_epoch=txn.next_producer_epoch,
    )


def _metadata(transactional_id: str, value: TransactionLogValue) -> Paced[TransactionMetadata]:
    """The last epoch is not in the log. So a retry after a change of the coordinator is not recognised."""
    try:
        state = TxnState(value.transaction_status)
    except ValueError as e:
        raise ProtocolError(
            f"transaction {transactional_id!r} has the unknown state {value.transaction_status}"
        ) from e
    partitions: list[TopicPartition] = []
    for entry in value.transaction_partitions or ():
        for start in range(0, len(entry.partition_ids), _AT_ONCE):
            ids = entry.partition_ids[start : start + _AT_ONCE]
            partitions += [TopicPartition(entry.topic, index) for index in ids]
            yield FEW + len(ids) * _PARTITION_CALLS
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        tuple(partitions),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_producer_epoch=value.next_producer_epoch,
        client_version=value.client_transaction_version,
    )
