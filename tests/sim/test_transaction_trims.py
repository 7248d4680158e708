"""The start of a log moves past a transaction: open, decided, or begun again."""

import asyncio

import pytest

from odradek.core.errors import ErrorCode
from odradek.sim.workloads.caller import Caller
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.sim.stage import TP, Stage, play

E = ErrorCode


async def trim(caller: Caller, offset: int) -> ErrorCode:
    types = request_types(ApiKey.DELETE_RECORDS)
    partition = types.DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = types.DeleteRecordsTopic(name="t", partitions=[partition])
    request = types.DeleteRecordsRequest(topics=[topic], timeout=5_000)
    answer = await caller.call(ApiKey.DELETE_RECORDS, request, version=2)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("offset", [1, 2, -1])
def test_a_transaction_whose_records_are_deleted_still_ends(offset: int, commit: bool, restart: bool) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        for sequence in range(2):
            assert await stage.write(caller, producer, 12, sequence=sequence) is E.NONE
        assert await trim(caller, offset) is E.NONE
        log = stage.node.replicas.partition(TP).log
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark
        if restart:
            await stage.host.stop()
            await stage.host.start()
            caller = stage.caller()
            log = stage.node.replicas.partition(TP).log
            while len(list(stage.node.transactions.shards())) < 2:
                await asyncio.sleep(0.01)
        assert log.log_start_offset == (2 if offset == -1 else offset)
        following = await stage.end(caller, producer, 5, commit=commit)
        assert not stage.is_open()
        kept = 2 - log.log_start_offset
        assert await stage.committed() == ([b"v"] * kept if commit else [])
        assert await stage.write(caller, following, 12) is E.NONE
        await stage.end(caller, following, 5)
        assert await stage.committed() == ([b"v"] * kept if commit else []) + [b"v"]

    play(story)
