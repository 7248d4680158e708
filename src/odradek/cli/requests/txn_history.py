"""The history of a transactional id: from the coordinator's log, and from the logs of its partitions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from odradek.cli.errors import kafka_failure
from odradek.cli.requests.cluster_access import EARLIEST, LATEST, READ_UNCOMMITTED, ClusterAccess
from odradek.cli.requests.scan import ReadLimit, ReadLimitError, ScannedBatch, scan
from odradek.cli.requests.timeline import Event, What
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TRANSACTION_STATE_TOPIC, TopicPartition, coordinator_partition

READ_LIMIT_BYTES = 64 << 20
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, FENCE = range(8)
_BEFORE_MS = 1_000
"""Clocks of clients that are behind the coordinator's by so much are allowed for."""

_OF_STATE = {
    PREPARE_COMMIT: What.PREPARE_COMMIT,
    PREPARE_ABORT: What.PREPARE_ABORT,
    COMPLETE_COMMIT: What.COMMITTED,
    COMPLETE_ABORT: What.ABORTED,
    DEAD: What.EXPIRED,
    FENCE: What.FENCED,
}


class Change(NamedTuple):
    """One record about the id; without a value it was forgotten."""

    time_ms: int
    value: Any | None


def history(cluster: ClusterAccess, transactional_id: str, count: int) -> list[Event]:
    """The events of the last transactions of an id, in order of time."""
    limit = ReadLimit(READ_LIMIT_BYTES)
    changes = list(_changes(cluster, transactional_id, limit))
    if not changes:
        error = KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        raise kafka_failure(f"transactional id {transactional_id}", transactional_id, error)
    events = last_transactions(coordinator_events(changes), count)
    producer_ids = {event.producer_id for event in events}
    partitions = sorted({event.tp for event in events if event.tp is not None})
    events = [e._replace(tp=None) if e.what is What.BEGIN else e for e in events]
    try:
        for tp in partitions:
            events += _partition_events(cluster, tp, events[0].time_ms, producer_ids, limit)
    except ReadLimitError:
        pass  # a timeline with fewer batches in it is one all the same
    order = list(What)
    return sorted(events, key=lambda event: (event.time_ms, order.index(event.what)))


def coordinator_events(changes: Iterable[Change]) -> list[Event]:
    """What the coordinator's records say, one after the other."""
    events: list[Event] = []
    before: Any | None = None
    for time_ms, value in changes:
        if value is None:
            if before is not None:
                events.append(_event(time_ms, What.EXPIRED, before))
            before = None
            continue
        state = value.transaction_status
        if state == EMPTY:
            events.append(_event(time_ms, What.INIT, value))
        elif state == ONGOING:
            known = set() if before is None or before.transaction_status != ONGOING else _partitions(before)
            if not known:
                events.append(_event(value.transaction_start_timestamp_ms, What.BEGIN, value))
            events += [
                _event(time_ms, What.ADDED, value)._replace(tp=tp)
                for tp in sorted(_partitions(value) - known)
            ]
        elif state in _OF_STATE:
            fences = (
                state == PREPARE_ABORT
                and before is not None
                and before.transaction_status == ONGOING
                and value.client_transaction_version < 2
                and value.producer_epoch != before.producer_epoch
            )
            if fences:
                events.append(_event(time_ms, What.FENCED, value))
            events.append(_event(time_ms, _OF_STATE[state], value))
        before = value
    return events


def last_transactions(events: Sequence[Event], count: int) -> list[Event]:
    """From the so-manieth last beginning on; all where there are not as many."""
    begins = [i for i, event in enumerate(events) if event.what is What.BEGIN]
    return list(events[begins[-count] :]) if len(begins) > count else list(events)


def _event(time_ms: int, what: What, value: Any) -> Event:
    return Event(time_ms, what, None, None, None, value.producer_id, value.producer_epoch)


def _partitions(value: Any) -> set[TopicPartition]:
    return {
        TopicPartition(topic.topic, index)
        for topic in value.transaction_partitions or ()
        for index in topic.partition_ids
    }


def _changes(cluster: ClusterAccess, transactional_id: str, limit: ReadLimit) -> Iterator[Change]:
    from odradek.coordinators.records import decode_transaction_record
    from odradek.records.batch import iter_records

    topics, _ = cluster.find_topics([TRANSACTION_STATE_TOPIC])
    if not topics:
        return  # nobody has ever used transactions here
    (topic,) = topics
    tp = TopicPartition(topic.name, coordinator_partition(transactional_id, len(topic.partitions)))
    start = cluster.list_offsets([topic], [tp], EARLIEST)[tp] or 0
    stop = cluster.list_offsets([topic], [tp], LATEST)[tp] or 0
    for data, batch, is_shown in scan(cluster, topic, tp, start, stop, limit):
        for record in iter_records(data, batch) if is_shown else ():
            found = None if record.key is None else decode_transaction_record(record.key, record.value)
            if found is None or getattr(found[0], "transactional_id", None) != transactional_id:
                continue
            yield Change(record.timestamp, found[1])


def _partition_events(
    cluster: ClusterAccess, tp: TopicPartition, since_ms: int, producer_ids: set[int], limit: ReadLimit
) -> list[Event]:
    """Batches and markers of some producers in a partition; neighbouring batches are one event."""
    topics, failures = cluster.find_topics([tp.topic])
    if failures:
        return []  # deleted since
    start = cluster.list_offsets(topics, [tp], since_ms - _BEFORE_MS)[tp]
    stop = cluster.list_offsets(topics, [tp], LATEST)[tp] or 0
    if start is None:
        return []
    events: list[Event] = []
    for found in scan(cluster, topics[0], tp, start, stop, limit, isolation_level=READ_UNCOMMITTED):
        batch = found.batch
        if batch.producer_id not in producer_ids or not batch.is_transactional:
            continue
        event = Event(
            batch.base_timestamp,
            _what(found),
            tp,
            batch.base_offset,
            None if batch.is_control else batch.record_count,
            batch.producer_id,
            batch.producer_epoch,
        )
        last = events[-1] if events else None
        if (
            last is not None
            and last.what is What.BATCHES
            and event[1:3] == last[1:3]
            and last[5:] == event[5:]
        ):
            events[-1] = last._replace(records=(last.records or 0) + (event.records or 0))
        else:
            events.append(event)
    return ended_since(events, since_ms)


def ended_since(events: Sequence[Event], since_ms: int) -> list[Event]:
    """Without the transactions whose marker was written before a moment: they are not asked for."""
    kept: list[Event] = []
    transaction: list[Event] = []
    for event in events:
        transaction.append(event)
        if event.what is not What.BATCHES:
            kept += transaction if event.time_ms >= since_ms else []
            transaction = []
    return kept + transaction


def _what(found: ScannedBatch) -> What:
    from odradek.records.batch import iter_records
    from odradek.records.control import ControlType, parse_control_key

    if not found.batch.is_control:
        return What.BATCHES
    record = next(iter(iter_records(found.data, found.batch)))
    return What.COMMIT_MARKER if parse_control_key(record.key) is ControlType.COMMIT else What.ABORT_MARKER
