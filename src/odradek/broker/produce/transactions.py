"""The first write of a transaction to a partition: adds the partition to the transaction, or verifies it.

Since Produce v12 the write itself adds the partition (KIP-890). Before, the client has added it, and the
leader asks the coordinator whether it has. Later writes of the same transaction need neither.
"""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from odradek.broker.produce.requests import Entry, PendingProduce
from odradek.broker.produce.routes import ATTRIBUTES
from odradek.coordinators.transactions.add_partitions import AddPartitionsToTxnManager
from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.core.types import ProducerIdAndEpoch
from odradek.records.check import CheckedRecords
from odradek.records.header import HEADER_BYTES, TRANSACTIONAL_FLAG, read_header
from odradek.runtime.reply import Reply

if TYPE_CHECKING:
    from odradek.replication.partition import Partition

FIRST_THAT_ADDS: Final = 12
FIRST_WITH_ABORTABLE: Final = 11

_ASK_AGAIN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


Question: TypeAlias = Coroutine[Any, Any, None]
"""A request to the coordinator. It refuses the entries that must not be written."""


class Needs(Protocol):
    txn_partitions: AddPartitionsToTxnManager


class _First(NamedTuple):
    """An entry that may start a transaction on its partition."""

    entry: Entry
    partition: "Partition"
    sequence: int


def is_transactional(records: memoryview | None) -> bool:
    """Whether a set has the transactional flag."""
    return (
        records is not None
        and len(records) >= HEADER_BYTES
        and bool(records[ATTRIBUTES] & TRANSACTIONAL_FLAG)
    )


def check_transaction(services: Needs, request: PendingProduce) -> Question | None:
    """Refuse the entries that are not part of a transaction. Returns a coroutine if the coordinator must be
    asked.

    The other entries have guards until they are appended.
    """
    firsts: list[_First] = []
    producers: dict[ProducerIdAndEpoch, None] = {}
    for _, entries in request.topics:
        for entry in entries:
            partition, records = entry.partition, entry.records
            if entry.outcome is not None or partition is None or not is_transactional(records):
                continue
            assert records is not None
            batch = read_header(records, 0)
            producer = ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
            producers[producer] = None
            if not _is_known_here(partition, producer):
                firsts.append(_First(entry, partition, batch.base_sequence))
    if len(producers) > 1:
        _refuse_all(request, KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        return None
    if not firsts or not (services.txn_partitions.verifies or _adds(request)):
        return None
    (producer,) = producers
    _take_guards(producer, firsts)
    _expect_starts(request, producer, firsts)
    question: Question | None = None
    reply = _ask(services, request, producer, firsts)
    error = reply.error
    if not reply.is_ready:
        question = _wait(services, request, producer, firsts, reply)
    elif error is None:
        _take_answer(request, firsts, reply.value)
    elif not isinstance(error, KafkaError):
        raise error
    elif error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        question = _ask_until(services, request, producer, firsts)
    else:
        _refuse(firsts, _as_produce_error(request, error))
    return question


def _is_known_here(partition: "Partition", producer: ProducerIdAndEpoch) -> bool:
    """Whether the partition itself can decide: the transaction is open here, or the producer is a zombie."""
    producers = partition.log.producers
    # The append refuses a zombie before all other checks (KAFKA-19690).
    return producers.is_fenced(*producer) or producers.in_transaction(*producer)


def _take_guards(producer: ProducerIdAndEpoch, firsts: list[_First]) -> None:
    for entry, partition, _ in firsts:
        if entry.guard is not None:
            partition.verification.release(entry.guard)
        entry.guard = partition.verification.begin(producer.producer_id)


def _expect_starts(request: PendingProduce, producer: ProducerIdAndEpoch, firsts: list[_First]) -> None:
    """If these entries are refused, later ones in flight must be refused too: they must not become the first.

    With an epoch per transaction the first sequence is always 0.
    """
    for _, partition, sequence in firsts:
        first = 0 if _adds(request) else sequence
        partition.log.producers.expect_start(*producer, first)


def release_guards(request: PendingProduce) -> None:
    for _, entries in request.topics:
        for entry in entries:
            if entry.guard is not None:
                assert entry.partition is not None
                entry.partition.verification.release(entry.guard)
                entry.guard = None


def unless_overtaken(
    services: Needs, entries: list[Entry], checked: list[CheckedRecords | KafkaError]
) -> list[CheckedRecords | KafkaError]:
    """The entries that may still be appended: their transaction may have ended here since they were
    checked."""
    return [
        _overtaken() if services.txn_partitions.verifies and _is_overtaken(entry) else outcome
        for entry, outcome in zip(entries, checked, strict=True)
    ]


def _is_overtaken(entry: Entry) -> bool:
    partition, records = entry.partition, entry.records
    if partition is None or records is None or not is_transactional(records):
        return False
    batch = read_header(records, 0)
    if _is_known_here(partition, ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)):
        return False
    return entry.guard is None or not partition.verification.holds(entry.guard)


def _overtaken() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")


def _ask(
    services: Needs, request: PendingProduce, producer: ProducerIdAndEpoch, firsts: list[_First]
) -> Reply[Any]:
    """NONE, or one error code per entry."""
    assert request.transactional_id is not None
    partitions = [first.partition.topic_partition for first in firsts]
    if _adds(request):
        return services.txn_partitions.add(request.transactional_id, producer, partitions)
    return services.txn_partitions.verify(request.transactional_id, producer, partitions)


def _adds(request: PendingProduce) -> bool:
    """Whether the write adds the partition. As in Apache Kafka only the request version decides, not the
    feature."""
    return request.header.api_version >= FIRST_THAT_ADDS


async def _wait(
    services: Needs,
    request: PendingProduce,
    producer: ProducerIdAndEpoch,
    firsts: list[_First],
    reply: Reply[Any],
) -> None:
    try:
        _take_answer(request, firsts, await reply)
    except KafkaError as e:
        if e.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            await _ask_until(services, request, producer, firsts)
        else:
            _refuse(firsts, _as_produce_error(request, e))


async def _ask_until(
    services: Needs, request: PendingProduce, producer: ProducerIdAndEpoch, firsts: "list[_First]"
) -> None:
    """Retry while the producer's last transaction is still ending. The client need not see this.

    The end that makes the guards invalid belongs to the last transaction (KAFKA-18575): the end of this one
    would have another epoch.
    """
    assert request.transactional_id is not None
    try:
        if not _adds(request):
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        partitions = [first.partition.topic_partition for first in firsts]
        await services.txn_partitions.add_with_retries(request.transactional_id, producer, partitions)
    except KafkaError as e:
        _refuse(firsts, _as_produce_error(request, e))
        return
    _take_guards(producer, firsts)
    _take_answer(request, firsts, ErrorCode.NONE)


def _take_answer(request: PendingProduce, firsts: list[_First], answer: Any) -> None:
    codes = answer if isinstance(answer, list) else [answer] * len(firsts)
    for (entry, _, _), code in zip(firsts, codes, strict=True):
        if code is not ErrorCode.NONE:
            entry.outcome = _as_produce_error(request, KafkaError(code))


def _refuse(firsts: list[_First], error: KafkaError) -> None:
    for entry, _, _ in firsts:
        entry.outcome = error


def _refuse_all(request: PendingProduce, error: KafkaError) -> None:
    for _, entries in request.topics:
        for entry in entries:
            if entry.outcome is None:
                entry.outcome = error


def _as_produce_error(request: PendingProduce, error: KafkaError) -> KafkaError:
    """The coordinator's error as an error code for Produce."""
    code, version = error.code, request.header.api_version
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code in _ASK_AGAIN or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_THAT_ADDS):
        code = ErrorCode.NOT_ENOUGH_REPLICAS
    elif code is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_WITH_ABORTABLE:
        return RecordError(ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction")
    return KafkaError(code, error.message)
