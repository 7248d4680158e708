"""A node runs out of descriptors for a while: it answers what it can, and recovers when they are available
again."""

import asyncio
import errno

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.sim.stories.transactions import TxnSettings
from odradek.sim.world.disk import DiskFault
from tests.sim.stage import SETTINGS, Stage, play

E = ErrorCode
ROLLS = TxnSettings(**{**SETTINGS, "segment_ms": 1_000, "checkpoint_interval_ms": 500})


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM], ids=errno.errorcode.get)
def test_a_node_goes_on_when_descriptors_are_there_again(code: int) -> None:
    async def story(stage: Stage) -> None:
        caller, other = await stage.prepare(), stage.caller()
        producer = await stage.init(caller)
        await stage.add(caller, producer)
        assert await stage.write(caller, producer, 11) == E.NONE
        await asyncio.sleep(3)
        lacking = DiskFault(code, ["open", "listdir"])
        stage.host.faults.rules.append(lacking)
        assert await stage.write(caller, producer, 11, sequence=1) == E.KAFKA_STORAGE_ERROR  # cannot roll
        created = asyncio.get_running_loop().create_task(stage.create_topic(other, "u"))
        await asyncio.sleep(7)
        assert stage.node.health.trouble() is None
        stage.host.faults.rules.clear()
        await created
        await asyncio.sleep(3)
        assert stage.node.replicas.partition(TopicPartition("u", 0)).is_leader
        await stage.add(caller, producer, "t", "u")
        assert await stage.write(caller, producer, 11, sequence=1) == E.NONE
        assert await stage.write(caller, producer, 11, topic="u") == E.NONE
        await stage.end(caller, producer, 3)
        assert len(await stage.committed()) == 2
        assert stage.node.health.trouble() is None
        assert stage.node.replicas.offline == {}

    play(story, ROLLS)


def test_clients_wait_where_the_process_has_few_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.sim.world.runtime.DESCRIPTOR_LIMIT", 16)

    async def story(stage: Stage) -> None:
        first = await stage.prepare()
        allowed = stage.node.server.max_connections
        assert 4 < allowed < 16
        others = [stage.caller() for _ in range(allowed - 1)]
        for caller in others:
            await caller.connect()
        late = asyncio.get_running_loop().create_task(stage.create_topic(stage.caller(), "late"))
        await asyncio.sleep(1)
        assert not late.done() and len(stage.node.server.connections) == allowed
        await stage.create_topic(first, "served")
        others[0].close()
        await late

    play(story)
