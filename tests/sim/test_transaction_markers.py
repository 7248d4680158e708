"""The markers in a partition's log, and what the node reports about transactions that never end."""

import asyncio

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import TRANSACTION_STATE_TOPIC, TopicPartition
from odradek.http.families import families
from odradek.http.lags import Lags
from odradek.log.log import Isolation
from odradek.records.batch import iter_batches, iter_records
from odradek.records.control import EndTransactionMarker, parse_marker
from odradek.sim.workloads.caller import Caller
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.sim.stage import TID, TP, Stage, play

E = ErrorCode


def markers(stage: Stage) -> list[EndTransactionMarker]:
    log = stage.node.replicas.partition(TP).log
    info = log.read(log.log_start_offset, 1 << 20, Isolation.LOG_END)
    assert info.slice is not None
    data = info.slice.read()
    return [
        parse_marker(record.key, record.value)
        for batch in iter_batches(data)
        if batch.is_control
        for record in iter_records(data, batch)
    ]


def test_a_marker_has_the_leader_epoch_of_its_coordinator() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.host.stop()
        await stage.host.start()  # elected anew, at the next epoch
        caller = stage.caller()
        producer = await stage.init(caller)
        assert await stage.write(caller, producer, 12) is E.NONE
        await stage.end(caller, producer, 5)
        index = stage.node.transactions.partition_for(TID)
        epoch = stage.node.replicas.partition(TopicPartition(TRANSACTION_STATE_TOPIC, index)).leader_epoch
        assert epoch > 0
        assert markers(stage) == [EndTransactionMarker(True, epoch)]

    play(story)


async def write_marker(caller: Caller, producer: tuple[int, int], coordinator_epoch: int) -> ErrorCode:
    """As the coordinator of another broker does."""
    types = request_types(ApiKey.WRITE_TXN_MARKERS)
    marker = types.WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=False,
        topics=[types.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        coordinator_epoch=coordinator_epoch,
    )
    request = types.WriteTxnMarkersRequest(markers=[marker])
    answer = await caller.call(ApiKey.WRITE_TXN_MARKERS, request, version=1)
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


def test_a_marker_of_another_broker_has_the_epoch_it_came_with() -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        await stage.write(caller, producer, 12)
        assert await write_marker(caller, producer, 5) is E.NONE
        assert await write_marker(caller, producer, 4) is E.TRANSACTION_COORDINATOR_FENCED
        assert await write_marker(caller, producer, 6) is E.NONE
        assert [marker.coordinator_epoch for marker in markers(stage)] == [5, 6]

    play(story)


def late(stage: Stage, now_ms: int) -> float:
    """What the node tells of partitions whose transaction its coordinator must have lost."""
    (family,) = [
        found
        for found in families(stage.node, Lags(stage.node), 1.0, [], now_ms)
        if found is not None and found.name.endswith("partitionswithlatetransactionscount")
    ]
    (sample,) = family.samples
    return float(sample.value)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_partition_whose_transaction_is_late_is_counted(is_open: bool) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        await stage.write(caller, producer, 12)
        written_ms = stage.host.clock.now_ms()
        if not is_open:
            await stage.end(caller, producer, 5)
        await asyncio.sleep(0.1)
        longest_ms = stage.node.transactions.config.max_timeout_ms
        assert late(stage, written_ms + longest_ms + 200_000) == 0
        assert late(stage, written_ms + longest_ms + 400_000) == int(is_open)

    play(story)
