"""Produce v3-v13 (v0-v2 are advertised, as Apache does for librdkafka's sake, and refused).

Coded by hand (wire/produce.py) and called with all neighbouring Produce frames of one receive: every
partition is checked once and written once for the whole run. A frame whose check takes long (gzip, zstd,
recompression) leaves the loop for it, and the connection waits: nothing behind it overtakes.
Transactional batches are refused with INVALID_TXN_STATE as long as no transaction coordinator exists.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis import is_served
from odradek.broker.produce_routes import ATTRIBUTES, HEAD, find_route, learn_route
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError, RecordError
from odradek.log.log import AppendInfo
from odradek.records.check import CheckedRecords, check_produce, is_heavy
from odradek.records.header import HEADER_BYTES, TRANSACTIONAL_FLAG
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import RequestHeader, parse_request_header
from odradek.wire.produce import PartitionProduced, ProduceRequest, encode_produce_response

if TYPE_CHECKING:
    from odradek.broker.connection import Connection, Reply
    from odradek.broker.node import Node
    from odradek.replication.partition import Partition

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1


class _Entry:
    """What one request brings for one partition, and what became of it."""

    __slots__ = ("error", "index", "info", "partition", "records")

    def __init__(self, index: int, records: memoryview | None) -> None:
        self.index = index
        self.records = records
        self.partition: Partition | None = None
        self.info: AppendInfo | None = None
        self.error: KafkaError | None = None

    def answer(self) -> PartitionProduced:
        error, info = self.error, self.info
        if error is None:
            assert info is not None
            return PartitionProduced(
                self.index, 0, info.first_offset, info.log_append_time_ms, info.log_start_offset
            )
        # Apache words only the errors that name records.
        records, message = (error.records, error.message) if isinstance(error, RecordError) else ((), None)
        leader = None
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and self.partition is not None:
            leader = self.partition.leader_id, self.partition.leader_epoch
        return PartitionProduced(self.index, error.code, -1, -1, -1, records, message, leader)


class _Request:
    """One Produce request from its frame to its reply."""

    __slots__ = (
        "acks",
        "connection",
        "has_transactional_id",
        "header",
        "place",
        "timeout_ms",
        "timer",
        "topics",
        "waiting",
    )

    def __init__(self, connection: "Connection", header: RequestHeader, parsed: ProduceRequest) -> None:
        self.connection = connection
        self.header = header
        self.acks = parsed.acks
        self.has_transactional_id = parsed.transactional_id is not None
        self.timeout_ms = parsed.timeout_ms
        self.topics = [
            (topic, [_Entry(index, records) for index, records in partitions])
            for topic, partitions in parsed.topics
        ]
        self.waiting: dict[_Entry, None] = {}
        self.place: Reply | None = None
        self.timer: asyncio.TimerHandle | None = None

    def encoded(self) -> bytes:
        topics = [(topic, [entry.answer() for entry in entries]) for topic, entries in self.topics]
        return encode_produce_response(self.header.api_version, self.header.correlation_id, topics)

    def finish(self) -> None:
        """Reply now, or when the high watermark has passed everything that was written."""
        if self.acks == ACKS_NONE:
            self._finish_unacknowledged()
            return
        if self.acks == ACKS_ALL:
            for _, entries in self.topics:
                for entry in entries:
                    self._wait_if_uncommitted(entry)
        if not self.waiting:
            if self.place is None:
                self.connection.reply(self.encoded())
            else:
                self.connection.fulfil(self.place, self.encoded())
            return
        if self.place is None:
            self.place = self.connection.reserve()
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(self.timeout_ms / 1000, self._time_out)

    def _finish_unacknowledged(self) -> None:
        failed = next((e for _, entries in self.topics for e in entries if e.error is not None), None)
        if self.place is not None:
            self.connection.fulfil(self.place)
        if failed is not None and failed.error is not None:
            # A producer without acknowledgements learns of an error only by losing its connection.
            raise ProtocolError(f"produce with acks=0 failed: {failed.error.code.name}")

    def _wait_if_uncommitted(self, entry: _Entry) -> None:
        info, partition = entry.info, entry.partition
        if info is None or partition is None or partition.log.high_watermark > info.last_offset:
            return
        self.waiting[entry] = None
        partition.commit_waiters.add(info.last_offset + 1, lambda error: self._settle(entry, error))

    def _settle(self, entry: _Entry, error: KafkaError | None) -> None:
        if entry not in self.waiting:
            return
        del self.waiting[entry]
        if error is None and entry.partition is not None and entry.partition.under_min_isr():
            error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        entry.error = error
        if not self.waiting:
            assert self.timer is not None and self.place is not None
            self.timer.cancel()
            self.connection.fulfil(self.place, self.encoded())

    def _time_out(self) -> None:
        for entry in list(self.waiting):
            self._settle(entry, KafkaError(ErrorCode.REQUEST_TIMED_OUT))


def handle_run(
    node: "Node", connection: "Connection", view: memoryview, frames: list[tuple[int, int]]
) -> int:
    """Handle neighbouring frames as one; returns how many, fewer than given when one left the loop."""
    taken = _handle_routed(node, connection, view, frames) if connection.routes else 0
    requests: list[_Request] = []
    groups: dict[tuple[Partition, int], list[_Entry]] = {}
    heavy: _Request | None = None
    for start, stop in frames[taken:] if taken else frames:
        taken += 1
        frame = view[start:stop]
        request = _parse(connection, frame)
        if _is_heavy(node, request):
            heavy = _parse(connection, memoryview(bytearray(frame)))
            break
        requests.append(request)
        _place(node, request, groups)
    for (partition, version), entries in groups.items():
        sets = [entry.records for entry in entries if entry.records is not None]
        checked = check_produce(sets, partition.rules, node.runtime.clock.now_ms(), version)
        _append(partition, entries, checked)
    for request in requests:
        connection.begin(request.header)
        request.finish()
    if heavy is not None:
        connection.begin(heavy.header)
        heavy.place = connection.reserve()
        connection.suspend()
        connection.spawn(_handle_heavy(node, connection, heavy), "PRODUCE")
    return taken


def _handle_routed(
    node: "Node", connection: "Connection", view: memoryview, frames: list[tuple[int, int]]
) -> int:
    """The leading frames that go the way of earlier ones, to one partition, and can be answered at once.

    What is the same as in the frames before is not looked at again; every record is.
    """
    start, stop = frames[0]
    route, records = find_route(connection.routes, view, start, stop)
    if route is None or records is None:
        return 0
    partition = node.replicas.find(route.topic, route.index)
    if partition is None or not _is_direct(node, partition, route.acks):
        return 0
    sets: list[memoryview] = []
    correlation_ids: list[int] = []
    while records is not None:
        sets.append(records)
        correlation_ids.append(HEAD.unpack_from(view, start)[2])
        if len(sets) == len(frames):
            break
        start, stop = frames[len(sets)]
        records = route.records(view, start, stop)
    checked = check_produce(sets, partition.rules, node.runtime.clock.now_ms(), route.version)
    entries = [_Entry(route.index, records) for records in sets]
    for entry in entries:
        entry.partition = partition
    _append(partition, entries, checked)
    connection.begin(route.header)
    replies = [
        encode_produce_response(route.version, correlation_id, [(route.topic, [entry.answer()])])
        for correlation_id, entry in zip(correlation_ids, entries, strict=True)
    ]
    connection.reply_many(replies)
    return len(sets)


def _is_direct(node: "Node", partition: "Partition", acks: int) -> bool:
    """Whether an append is committed with the write itself, so that its reply need not wait."""
    if acks == ACKS_NONE or not partition.is_leader or partition.rules.target_codec:
        return False
    if node.faults.active or partition.under_min_isr():
        return False
    return acks == ACKS_LEADER or (acks == ACKS_ALL and len(partition.isr.maximal) == 1)


async def _handle_heavy(node: "Node", connection: "Connection", request: _Request) -> None:
    """Check away from the loop, append on it. The partition may have changed hands meanwhile."""
    groups: dict[tuple[Partition, int], list[_Entry]] = {}
    _place(node, request, groups)
    try:
        for (partition, version), entries in groups.items():
            sets = [entry.records for entry in entries if entry.records is not None]
            rules, now_ms = partition.rules, node.runtime.clock.now_ms()
            checked = await node.runtime.offload(partial(check_produce, sets, rules, now_ms, version))
            _append(partition, entries, checked)
        request.finish()
    except ProtocolError as e:
        connection.close(str(e))
    finally:
        connection.resume()


def _parse(connection: "Connection", frame: memoryview) -> _Request:
    header, position = parse_request_header(frame)
    if not is_served(ApiKey.PRODUCE, header.api_version):
        raise ProtocolError(f"api PRODUCE v{header.api_version} of client {header.client_id!r} is not served")
    request = ProduceRequest.parse(frame, position, header.api_version)
    learn_route(connection.routes, header, request, frame)
    return _Request(connection, header, request)


def _is_heavy(node: "Node", request: _Request) -> bool:
    for topic, entries in request.topics:
        for entry in entries:
            if entry.records is not None:
                partition = node.replicas.find(topic, entry.index)
                if is_heavy(entry.records, partition.rules.target_codec if partition is not None else None):
                    return True
    return False


def _place(node: "Node", request: _Request, groups: "dict[tuple[Partition, int], list[_Entry]]") -> None:
    """Find the partition of every entry; those that cannot be written get their error here."""
    version = request.header.api_version
    refused = node.faults.take(ApiKey.PRODUCE) if node.faults.active else None
    if refused is None and not request.has_transactional_id and _is_transactional(request):
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    for topic, entries in request.topics:
        for entry in entries:
            try:
                if refused is not None:
                    raise KafkaError(refused)
                if not ACKS_ALL <= request.acks <= ACKS_LEADER:
                    raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
                partition = node.replicas.find(topic, entry.index)
                if partition is None:
                    partition = node.replicas.partition_of(topic, entry.index)
                entry.partition = partition
                partition.require_leader()
                if request.acks == ACKS_ALL and partition.under_min_isr():
                    raise KafkaError(
                        ErrorCode.NOT_ENOUGH_REPLICAS,
                        f"The size of the current ISR {partition.isr.members} is insufficient to satisfy the "
                        f"min.isr requirement of {partition.log.config.min_insync_replicas} "
                        f"for partition {partition.topic_partition}",
                    )
                if entry.records is None:
                    entry.records = memoryview(b"")
            except KafkaError as e:
                entry.error = e
                continue
            groups.setdefault((partition, version), []).append(entry)


def _is_transactional(request: _Request) -> bool:
    """Whether any set of the request claims to be part of a transaction."""
    for _, entries in request.topics:
        for entry in entries:
            records = entry.records
            if records is None or len(records) < HEADER_BYTES:
                continue
            if records[ATTRIBUTES] & TRANSACTIONAL_FLAG:
                return True
    return False


def _append(
    partition: "Partition", entries: list[_Entry], checked: "list[CheckedRecords | KafkaError]"
) -> None:
    """Append what passed its check, in order, and note for every entry what became of it."""
    passed: list[_Entry] = []
    sets: list[CheckedRecords] = []
    for entry, outcome in zip(entries, checked, strict=True):
        if isinstance(outcome, KafkaError):
            entry.error = outcome
        elif outcome.batches[0].is_transactional:
            entry.error = KafkaError(ErrorCode.INVALID_TXN_STATE)
        else:
            passed.append(entry)
            sets.append(outcome)
    metrics = partition.metrics
    metrics.produces += len(entries)
    metrics.failed_produces += len(entries) - len(passed)
    if not sets:
        return
    try:
        partition.require_leader()
        results = partition.append_as_leader(sets)
    except KafkaError as e:
        for entry in passed:
            entry.error = e
        metrics.failed_produces += len(passed)
        return
    for entry, outcome, result in zip(passed, sets, results, strict=True):
        if isinstance(result, KafkaError):
            entry.error = result
            metrics.failed_produces += 1
        else:
            entry.info = result
            metrics.bytes_in += len(outcome.buffer)
            metrics.messages_in += result.last_offset - result.first_offset + 1
