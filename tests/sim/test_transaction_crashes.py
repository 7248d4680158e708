"""The node killed at every step of a commit, topics deleted under a transaction, writes after an abort."""

import asyncio

import pytest

from odradek.coordinators.transactions.states import AT_REST, TxnState
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.sim.stories.transactions import TxnSettings
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.sim.world.cluster import CrashKind
from tests.sim.stage import SETTINGS, Stage, play

E = ErrorCode
U = TopicPartition("u", 0)
STEPS = 40
"""More system calls than any end of a transaction takes: the last ones kill the node after it."""


async def two_topics(stage: Stage, version: int) -> tuple[Caller, tuple[int, int]]:
    caller = await stage.prepare()
    await stage.create_topic(caller, "u")
    producer = await stage.init(caller)
    if version < 12:
        await stage.add(caller, producer, "t", "u")
    for topic in ("t", "u"):
        assert await stage.write(caller, producer, version, topic=topic) is E.NONE
    return caller, producer


@pytest.mark.parametrize("kind", CrashKind)
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("produce_version", "end_version"), [(11, 4), (12, 5)])
def test_a_node_killed_at_any_step_of_an_end_leaves_nothing_half_done(
    kind: CrashKind, commit: bool, produce_version: int, end_version: int
) -> None:
    steps_survived = 0
    for step in range(0, STEPS, 1 if kind is CrashKind.KILL else 3):

        async def story(stage: Stage, step: int = step) -> None:
            nonlocal steps_survived
            caller, producer = await two_topics(stage, produce_version)
            stage.host.crash_after(step, kind)
            answered = False
            try:
                answered = await stage.end_code(caller, producer, end_version, commit=commit) is E.NONE
            except NoAnswer:
                pass
            if stage.host.alive:
                steps_survived += 1
                stage.host.crash(kind)
            await stage.host.start()
            # A client that got no answer asks again, and the answer is that of the first time.
            caller = stage.caller()
            while (code := await stage.end_code(caller, producer, end_version, commit=commit)) in (
                E.COORDINATOR_LOAD_IN_PROGRESS,
                E.CONCURRENT_TRANSACTIONS,
            ):
                pass
            assert code is E.NONE, f"step {step}, answered before: {answered}"
            seen = [await stage.committed("t"), await stage.committed("u")]
            assert seen == ([[b"v"], [b"v"]] if commit else [[], []]), f"step {step}"
            assert not stage.is_open()
            assert not stage.is_open(U)
            assert stage.state().state in AT_REST

        play(story, TxnSettings(**{**SETTINGS, "flush_everything": True}))  # type: ignore[arg-type]
    assert steps_survived > 0, "the node was killed in the middle every time: more steps are needed"


@pytest.mark.parametrize("step", range(0, 24, 2))
def test_a_transaction_that_was_open_when_the_node_died_is_aborted_by_its_timeout(step: int) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller, timeout_ms=1_000)
        stage.host.crash_after(step, CrashKind.KILL)
        try:
            for sequence in range(3):
                await stage.write(caller, producer, 12, sequence=sequence)
        except NoAnswer:
            pass
        if stage.host.alive:
            stage.host.crash(CrashKind.KILL)
        await stage.host.start()
        await asyncio.sleep(5)
        assert not stage.is_open()
        assert await stage.committed() == []
        assert stage.state().state in AT_REST

    play(story)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("again", [False, True])
def test_a_topic_deleted_under_a_transaction_does_not_hold_it_up(commit: bool, again: bool) -> None:
    async def story(stage: Stage) -> None:
        caller, producer = await two_topics(stage, 12)
        await stage.delete_topic(caller, "u")
        if again:
            await stage.create_topic(caller, "u")
        following = await stage.end(caller, producer, 5, commit=commit)
        assert stage.state().state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT)
        assert await stage.committed("t") == ([b"v"] if commit else [])
        if again:
            assert await stage.committed("u") == []
            assert not stage.is_open(U)
            assert await stage.write(caller, following, 12, topic="u") is E.NONE
            await stage.end(caller, following, 5)
            assert await stage.committed("u") == [b"v"]

    play(story)


@pytest.mark.parametrize(("version", "end_version"), [(11, 4), (12, 5)])
def test_a_write_after_the_abort_of_its_transaction_is_refused(version: int, end_version: int) -> None:
    async def story(stage: Stage) -> None:
        caller, producer = await two_topics(stage, version)
        await stage.end(caller, producer, end_version, commit=False)
        told = await stage.write(caller, producer, version, sequence=1)
        assert told is (E.TRANSACTION_ABORTABLE if version < 12 else E.INVALID_PRODUCER_EPOCH)
        assert not stage.is_open()
        assert await stage.committed() == []

    play(story)
