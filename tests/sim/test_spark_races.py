"""Races between two drivers on one checkpoint, each constructed on a real node."""

import asyncio
from typing import Any

import pytest

from odradek.core.types import TopicPartition
from odradek.sim.stories.spark import BOOTSTRAP, read_committed
from odradek.sim.workloads.spark_workload import PREFIX, STREAM, TARGET, Temper, Unit, Worker
from odradek.spark.ledger import finishing
from odradek.spark.ledger.deciding import Decider, WrittenBatch
from odradek.spark.ledger.finishing import LostBatchError
from odradek.spark.ledger.ledger import Decision, Participant, Range, SupersededError
from odradek.spark.ledger.ledger_log import ensure_topics
from odradek.spark.sink.tasks import Task
from tests.sim.stage import Stage, play


class Run:
    """A driver by hand, with one worker. Batch n consists of the number 3n."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.name = name
        self.worker = Worker(stage.world, f"{name}-worker", BOOTSTRAP)
        self.unit = Unit(stage.world, name, BOOTSTRAP)
        self.decider = Decider(self.unit.client, STREAM, prefix=PREFIX)

    async def write(self, batch: int) -> Participant | None:
        return await self.worker.write(Task(STREAM, self.name, batch), [3 * batch], Temper())

    async def commit(self, batch: int, *participants: Participant | None) -> Decision:
        range_ = Range((str(batch),), (str(batch + 1),))
        written = tuple(p for p in participants if p is not None)
        return await self.decider.commit(WrittenBatch(batch, self.name, "", range_, written, {}))

    async def close(self) -> None:
        await self.decider.close()
        await self.unit.client.close()
        await self.worker.client.close()


async def prepared(stage: Stage) -> Run:
    """A run that has committed batch 0."""
    caller = await stage.prepare()
    await stage.create_topic(caller, TARGET)
    run = Run(stage, "first")
    await ensure_topics(run.unit.client)
    await run.commit(0, await run.write(0))
    return run


async def visible(run: Run) -> list[bytes]:
    return [record.value for record in await read_committed(run.unit.client, TopicPartition(TARGET, 0))]


def test_a_sweep_spares_what_was_decided_while_it_looked_around() -> None:
    """The list of what is open is older than the decision that the sweep would undo."""

    async def story(stage: Stage) -> None:
        first = await prepared(stage)
        await first.worker.client.close()
        first.worker = Worker(stage.world, "another-worker", BOOTSTRAP)
        written = await first.write(1)
        second = Run(stage, "second")
        listed, go_on = asyncio.Event(), asyncio.Event()
        open_participants = second.decider.open_participants

        async def slowly(*args: Any) -> list[str]:
            found = await open_participants(*args)
            listed.set()
            await go_on.wait()
            return found

        async def dies(*_: Any) -> None:
            raise ConnectionError("killed after the decision")

        second.decider.open_participants = slowly  # type: ignore[method-assign]
        replay = asyncio.ensure_future(second.commit(0, await second.write(0)))
        await asyncio.wait_for(listed.wait(), 60)
        first.decider.finish = dies  # type: ignore[method-assign]
        with pytest.raises(ConnectionError):
            await first.commit(1, written)
        go_on.set()
        with pytest.raises(SupersededError, match="has decided batch 1"):
            await replay
        third = Run(stage, "third")
        await third.commit(1, await third.write(1))
        assert await visible(third) == [b"0", b"3"]
        for run in (first, second, third):
            await run.close()

    play(story)


def test_a_run_that_is_behind_does_not_say_that_records_are_lost() -> None:
    """The slot was used again because its batch is finished."""

    async def story(stage: Stage) -> None:
        first = await prepared(stage)
        written = await first.write(1)
        second = Run(stage, "second")
        with pytest.raises(SupersededError, match="run first of this query is alive"):
            await second.commit(0, await second.write(0))
        await first.commit(1, written)
        assert await visible(first) == [b"0", b"3"]
        for run in (first, second):
            await run.close()

    play(story)


def test_records_that_are_lost_are_told_of() -> None:
    async def story(stage: Stage) -> None:
        first = await prepared(stage)
        written = await first.write(1)
        assert written is not None
        await first.decider._fence(written.transactional_id)
        with pytest.raises(LostBatchError, match="1 records are lost"):
            await finishing.commit_one(first.unit.client, written, first.name, 60)
        await first.close()

    play(story)
