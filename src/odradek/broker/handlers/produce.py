"""Produce v3-v13 (v0-v2 are advertised, as in Apache for librdkafka, but refused).

The codec is hand-written (wire/produce.py). The handler gets all consecutive Produce frames of one receive,
and checks and writes each partition once for all of them. If a check takes long (gzip, zstd, recompression),
or a frame starts a transaction and its coordinator must be asked, the connection waits, so that later frames
do not overtake it.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from odradek.broker.apis import BROKER_APIS
from odradek.broker.faults import PlantedErrors
from odradek.broker.produce.requests import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    Entry,
    PendingProduce,
)
from odradek.broker.produce.routes import HEAD, find_route, learn_route
from odradek.broker.produce.transactions import Needs as TransactionNeeds
from odradek.broker.produce.transactions import (
    Question,
    check_transaction,
    is_transactional,
    release_guards,
    unless_overtaken,
)
from odradek.broker.produce.waiting import WaitingRun, encode_outcome
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.log.log import AppendInfo
from odradek.records.check import check_produce, is_heavy
from odradek.replication.manager import ReplicaManager
from odradek.runtime.api import Runtime
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import RequestHeader, parse_request_header
from odradek.wire.limits import LongRequest
from odradek.wire.produce import ProduceRequest

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection
    from odradek.replication.leader import PartitionLeader
    from odradek.replication.partition import Partition

_log = logging.getLogger(__name__)


class Needs(TransactionNeeds, Protocol):
    faults: PlantedErrors
    heavy_checks: asyncio.Semaphore
    replicas: ReplicaManager
    runtime: Runtime
    slices: Slices


def handle_run(
    services: Needs,
    connection: "Connection",
    buffer: bytearray,
    view: memoryview,
    frames: list[tuple[int, int]],
) -> int:
    """Handle consecutive frames of a buffer together. Returns how many: fewer if one must wait, or has other
    acks than those before it."""
    taken = _handle_routed(services, connection, buffer, view, frames) if connection.routes else 0
    if taken == len(frames):
        return taken
    requests: list[PendingProduce] = []
    groups: dict[tuple[Partition, int], list[Entry]] = {}
    later: tuple[PendingProduce, Question | None] | None = None
    most = services.slices.few_entries
    for start, stop in frames[taken:] if taken else frames:
        frame = view[start:stop]
        header, position = parse_request_header(frame)
        try:
            request = _parse(connection, header, frame, position, most)
        except LongRequest:
            if not requests:
                connection.answer_in_slices(header, frame, position, stop)
                return taken + 1
            break
        if requests and request.acks != requests[0].acks:
            break  # an append has one acks: the next run starts here
        taken += 1
        _place(services, request)
        question = check_transaction(services, request) if request.transactional_id is not None else None
        if question is not None or _is_heavy(request):
            request.detach()
            later = request, question
            break
        requests.append(request)
        most -= _group(request, groups)
        if most <= 0:
            break
    for (partition, version), entries in groups.items():
        sets = [entry.records for entry in entries if entry.records is not None]
        checked = check_produce(sets, partition.rules, services.runtime.clock.now_ms(), version)
        outcomes = partition.append_checked(checked, acks_all=requests[0].acks == ACKS_ALL)
        _note_outcomes(entries, outcomes, partition.leader)
    for request in requests:
        if request.transactional_id is not None:
            release_guards(request)
        request.finish()
    if later is not None:
        request, question = later
        request.place = connection.reserve(request.header)
        connection.suspend()
        connection.spawn(_handle_later(services, connection, request, question), "PRODUCE")
    return taken


def _handle_routed(
    services: Needs,
    connection: "Connection",
    buffer: bytearray,
    view: memoryview,
    frames: list[tuple[int, int]],
) -> int:
    """Handle the first frames that have a cached route to one partition. They are answered at once, or wait
    for the high watermark together.

    The bytes of the route are not parsed again. Every record is checked.
    """
    start, stop = frames[0]
    route, records = find_route(connection.routes, buffer, view, start, stop)
    if route is None or records is None:
        return 0
    partition = services.replicas.find(route.topic, route.index)
    if partition is None or not _is_direct(services, partition, route.acks):
        return 0
    sets: list[memoryview] = []
    correlation_ids: list[int] = []
    while records is not None:
        sets.append(records)
        correlation_ids.append(HEAD.unpack_from(view, start)[2])
        if len(sets) == len(frames):
            break
        start, stop = frames[len(sets)]
        records = route.records(buffer, view, start, stop)
    checked = check_produce(sets, partition.rules, services.runtime.clock.now_ms(), route.version)
    outcomes = partition.append_checked(checked, acks_all=route.acks == ACKS_ALL)
    leader = partition.leader
    if route.acks == ACKS_ALL and leader is not None and not leader.alone:
        WaitingRun(connection, route, partition, leader, correlation_ids, outcomes)
        return len(sets)
    replies = [
        route.acknowledge(correlation_id, outcome)
        if type(outcome) is AppendInfo
        else encode_outcome(route, correlation_id, outcome, partition)
        for correlation_id, outcome in zip(correlation_ids, outcomes, strict=True)
    ]
    connection.reply_many(route.header, replies)
    return len(sets)


def _is_direct(services: Needs, partition: "Partition", acks: int) -> bool:
    """Whether the reply waits for nothing, or only for the high watermark."""
    leader = partition.leader
    if acks == ACKS_NONE or leader is None or partition.rules.target_codec:
        return False
    if services.faults.active or leader.under_min_isr or leader.flushes:
        return False
    return acks in (ACKS_LEADER, ACKS_ALL)


async def _handle_later(
    services: Needs, connection: "Connection", request: PendingProduce, question: Question | None
) -> None:
    """Wait, check in another thread, then append on the loop."""
    try:
        await _write(services, request, question, is_heavy=True)
        request.finish()
    except ProtocolError as e:
        connection.close(str(e))
    except Exception:
        _log.exception("Error while handling PRODUCE v%d", request.header.api_version)
        connection.close("internal error")
    finally:
        release_guards(request)
        connection.resume()


async def handle_part(services: Needs, part: PendingProduce) -> None:
    """Write a few partitions of a request that has many."""
    _place(services, part)
    question = check_transaction(services, part) if part.transactional_id is not None else None
    try:
        await _write(services, part, question, is_heavy=_is_heavy(part))
    finally:
        release_guards(part)


async def _write(
    services: Needs, request: PendingProduce, question: Question | None, *, is_heavy: bool
) -> None:
    """Check and append, after the transaction coordinator was asked. Heavy checks run in another thread. The
    leader or the ISR may change during that time, so the append checks both again."""
    groups: dict[tuple[Partition, int], list[Entry]] = {}
    if question is not None:
        await question
    _group(request, groups)
    for (partition, version), entries in groups.items():
        sets = [entry.records for entry in entries if entry.records is not None]
        check = partial(check_produce, sets, partition.rules, services.runtime.clock.now_ms(), version)
        if is_heavy:
            async with services.heavy_checks:
                checked = await services.runtime.offload(check)
        else:
            checked = check()
        checked = unless_overtaken(services, entries, checked)
        outcomes = partition.append_checked(checked, acks_all=request.acks == ACKS_ALL)
        _note_outcomes(entries, outcomes, partition.leader)


def _parse(
    connection: "Connection", header: RequestHeader, frame: memoryview, position: int, most: int
) -> PendingProduce:
    if not BROKER_APIS.serves(ApiKey.PRODUCE, header.api_version):
        raise ProtocolError(
            f"unsupported request from client {header.client_id!r}: api PRODUCE v{header.api_version}"
        )
    request = ProduceRequest.parse(frame, position, header.api_version, most)
    learn_route(connection.routes, header, request, frame)
    return PendingProduce(connection, header, request)


def _is_heavy(request: PendingProduce) -> bool:
    return any(
        is_heavy(entry.records, entry.partition.rules.target_codec)
        for _, entries in request.topics
        for entry in entries
        if entry.outcome is None and entry.records is not None and entry.partition is not None
    )


def _place(services: Needs, request: PendingProduce) -> None:
    """Find the partition of every entry. Entries that cannot be written get their error here."""
    refused = services.faults.take(ApiKey.PRODUCE) if services.faults.active else None
    if refused is None and request.transactional_id is None and _is_transactional(request):
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    for topic, entries in request.topics:
        for entry in entries:
            if entry.outcome is not None:
                continue
            try:
                if refused is not None:
                    raise KafkaError(refused)
                if not ACKS_ALL <= request.acks <= ACKS_LEADER:
                    raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
                partition = services.replicas.find(topic, entry.index)
                if partition is None:
                    partition = services.replicas.partition_of(topic, entry.index)
                entry.partition = partition
                leader = partition.require_leader()
                if request.acks == ACKS_ALL and leader.under_min_isr:
                    raise leader.not_enough_replicas()  # early, to save work: the append checks again
                if entry.records is None:
                    entry.records = memoryview(b"")
            except KafkaError as e:
                entry.outcome = e.with_traceback(None)  # its frames would live as long as the request


def _group(request: PendingProduce, groups: "dict[tuple[Partition, int], list[Entry]]") -> int:
    """Group the entries by partition. Returns the number of entries."""
    count = 0
    for _, entries in request.topics:
        count += len(entries)
        for entry in entries:
            if entry.outcome is None:
                assert entry.partition is not None
                groups.setdefault((entry.partition, request.header.api_version), []).append(entry)
    return count


def _is_transactional(request: PendingProduce) -> bool:
    return any(is_transactional(entry.records) for _, entries in request.topics for entry in entries)


def _note_outcomes(
    entries: list[Entry], outcomes: "list[AppendInfo | KafkaError]", leader: "PartitionLeader | None"
) -> None:
    for entry, outcome in zip(entries, outcomes, strict=True):
        entry.outcome = outcome
        entry.leader = leader
