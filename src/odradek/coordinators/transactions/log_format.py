"""The records of `__transaction_state` between bytes and what a transaction shard replays."""

import logging
import struct
from collections.abc import Callable
from functools import partial
from itertools import groupby

from odradek.coordinators.records import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
    decode_transaction_record,
    encode_key,
    encode_value,
)
from odradek.coordinators.shard import Encoded, Format, Record
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ProtocolError
from odradek.core.types import TopicPartition

log = logging.getLogger("odradek.coordinators.transactions")

_VERSION = struct.Struct(">h")
_NEWEST_VERSION = 1
_WITHOUT_PARTITIONS = frozenset({TxnState.EMPTY, TxnState.DEAD})


def record_format(value_version: Callable[[], int]) -> Format:
    """`value_version` tells which version of values the cluster's transaction version asks for."""
    return Format(partial(encode, value_version), decode)


def encode(value_version: Callable[[], int], record: Record) -> Encoded:
    """A key is a transactional id, a value its metadata."""
    transactional_id, txn = record
    key = encode_key(TransactionLogKey(transactional_id=transactional_id))
    return key, None if txn is None else encode_value(_value(txn), value_version())


def decode(key: bytes | None, value: bytes | None) -> Record | None:
    """None for a record of a version newer than this release knows. Raises ProtocolError."""
    if key is None:
        raise ProtocolError("a record of __transaction_state without a key")
    if value is not None and len(value) >= _VERSION.size:
        (version,) = _VERSION.unpack_from(value)
        if version > _NEWEST_VERSION:
            log.warning("A transaction log value of unknown version %d is left out", version)
            return None
    decoded = decode_transaction_record(key, value)
    if decoded is None:
        return None
    name, found = decoded
    assert isinstance(name, TransactionLogKey)
    if found is None:
        return name.transactional_id, None
    assert isinstance(found, TransactionLogValue)
    return name.transactional_id, _metadata(name.transactional_id, found)


def _value(txn: TransactionMetadata) -> TransactionLogValue:
    partitions = None
    if txn.state not in _WITHOUT_PARTITIONS:
        ordered = sorted(txn.partitions)
        partitions = [
            TransactionPartitions(topic=topic, partition_ids=[tp.partition for tp in group])
            for topic, group in groupby(ordered, key=lambda tp: tp.topic)
        ]
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


def _metadata(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    """The last epoch is not in the log: a retry that spans a change of the coordinator is not recognised."""
    try:
        state = TxnState(value.transaction_status)
    except ValueError as e:
        raise ProtocolError(f"transaction {transactional_id!r} in state {value.transaction_status}") from e
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        tuple(
            TopicPartition(entry.topic, index)
            for entry in value.transaction_partitions or ()
            for index in entry.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_producer_epoch=value.next_producer_epoch,
        client_version=value.client_transaction_version,
    )
