"""Four walks through a node: real requests to a whole node on virtual time, where one run is like the next.

Only code of the node is traced, and only between two of its timers: not its client, nor its chores.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode
from odradek.records.batch import build_batch
from odradek.sim.stories.transactions import TxnSettings
from odradek.sim.workloads.caller import Caller
from odradek.sim.world.process import CURRENT_PROCESS
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.documents.tracer import Tracer
from tests.sim.stage import SETTINGS, Stage

_CALM_S = 0.05
_PRODUCE_VERSION, _FETCH_VERSION, _INIT_VERSION, _END_VERSION = 13, 17, 5, 5

Begin = Callable[[], Awaitable[None]]
Walk = Callable[[Stage, Caller, Begin], Awaitable[None]]
"""Prepares, calls `begin`, and ends where the walk does."""


def traced(walk: Walk) -> Tracer:
    """The walk in a world of its own. A first one fills caches: what is compiled when it is first needed
    belongs to no walk."""
    for _ in range(2):
        tracer = _traced(walk)
    return tracer


def _traced(walk: Walk) -> Tracer:
    stage = Stage(TxnSettings(**SETTINGS))  # type: ignore[arg-type]
    tracer = Tracer(lambda: CURRENT_PROCESS.get() is _process(stage))

    async def begin() -> None:
        await asyncio.sleep(1)  # what the preparations left to do
        while not _is_calm(stage):
            await asyncio.sleep(_CALM_S)
        tracer.begin()

    async def main() -> None:
        caller = await stage.prepare()
        try:
            await walk(stage, caller, begin)
        finally:
            tracer.end()
        await stage.host.stop()

    stage.world.run(main())
    return tracer


def _process(stage: Stage) -> Any:
    assert stage.host.runtime is not None
    return stage.host.runtime.process


def _is_calm(stage: Stage) -> bool:
    """Whether the node will do nothing by the clock for a while."""
    loop, process = stage.world.loop, _process(stage)
    due = [
        timer._when  # type: ignore[attr-defined]
        for timer in loop._scheduled
        if not timer.cancelled() and timer._context.get(CURRENT_PROCESS) is process  # type: ignore[attr-defined]
    ]
    return bool(min(due) > loop.now() + _CALM_S)


async def record_in(stage: Stage, caller: Caller, begin: Begin) -> None:
    """Produce with acks=all, while the Fetch of another client waits for the record."""
    consumer = stage.caller()
    waiting = await consumer.send(ApiKey.FETCH, _fetch(stage), version=_FETCH_VERSION)
    await begin()
    await _produce(stage, caller)
    await consumer.answer(waiting)


async def record_out(stage: Stage, caller: Caller, begin: Begin) -> None:
    """Fetch of a record that is there."""
    await _produce(stage, caller)
    await begin()
    answer = await caller.call(ApiKey.FETCH, _fetch(stage), version=_FETCH_VERSION)
    assert answer.responses[0].partitions[0].records


async def change_of_metadata(stage: Stage, caller: Caller, begin: Begin) -> None:
    """CreateTopics with one topic of one partition."""
    await begin()
    await stage.create_topic(caller, "u")


async def transaction(stage: Stage, caller: Caller, begin: Begin) -> None:
    """InitProducerId, Produce, EndTxn, and the marker. A block of producer ids is at hand."""
    types = request_types(ApiKey.INIT_PRODUCER_ID)
    idempotent = types.InitProducerIdRequest(transactional_id=None, transaction_timeout=60_000)
    await caller.call(ApiKey.INIT_PRODUCER_ID, idempotent, version=_INIT_VERSION)
    await begin()
    producer = await stage.init(caller)
    assert await stage.write(caller, producer, version=12) is ErrorCode.NONE
    await stage.end(caller, producer, _END_VERSION)
    while stage.state().state is not TxnState.COMPLETE_COMMIT:
        await asyncio.sleep(0.001)


async def _produce(stage: Stage, caller: Caller) -> None:
    types = request_types(ApiKey.PRODUCE)
    records = bytes(build_batch([(stage.host.clock.now_ms(), b"k", b"v", ())]))
    partition = types.PartitionProduceData(index=0, records=records)
    topic = types.TopicProduceData(topic_id=_topic_id(stage), partition_data=[partition])
    request = types.ProduceRequest(acks=-1, timeout=5_000, topic_data=[topic])
    answer = await caller.call(ApiKey.PRODUCE, request, version=_PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def _fetch(stage: Stage) -> Any:
    types = request_types(ApiKey.FETCH)
    partition = types.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = types.FetchTopic(topic_id=_topic_id(stage), partitions=[partition])
    return types.FetchRequest(max_wait=10_000, min_bytes=1, max_bytes=1 << 20, topics=[topic])


def _topic_id(stage: Stage) -> Any:
    return stage.node.metadata.image.topics_by_name["t"].id
