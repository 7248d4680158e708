"""Proves that the simulated loop jumps through time, keeps order, and lets nothing of a dead process run."""

import asyncio
import gc
import sys

import pytest

from odradek.sim.world.loop import SimulationSpinning, SimulationStuck
from odradek.sim.world.process import Process, ProcessCrashed
from odradek.sim.world.world import World


def test_an_hour_passes_at_once() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert World(1).run(main()) == pytest.approx(3600, abs=0.01)


def test_timers_fire_by_deadline() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        fired: list[int] = []
        for delay in (5, 3, 9, 1):
            loop.call_later(delay, fired.append, delay)
        await asyncio.sleep(10)
        return fired

    assert World(1).run(main()) == [1, 3, 5, 9]


def test_waiting_for_what_never_comes_is_an_error() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(SimulationStuck):
        World(1).run(main())


def test_going_round_without_end_is_an_error() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    world = World(1)
    world.loop.max_turns = 1000
    with pytest.raises(SimulationSpinning):
        world.run(main())


def test_spinning_code_makes_time_pass() -> None:
    async def main() -> bool:
        timer = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.001, timer.set_result, None)
        while not timer.done():
            await asyncio.sleep(0)
        return True

    assert World(1).run(main())


def test_threads_are_refused() -> None:
    async def main() -> None:
        with pytest.raises(AssertionError, match="offload"):
            await asyncio.to_thread(print)

    World(1).run(main())


def test_nothing_of_a_dead_process_runs() -> None:
    world = World(1)
    process = Process("victim")
    ran: list[str] = []

    async def victim(name: str, gate: "asyncio.Future[None]") -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(1, ran.append, f"{name}: timer")
        try:
            await gate
            ran.append(f"{name}: woken")
        finally:
            process.check()
            ran.append(f"{name}: cleaned up")

    async def main() -> None:
        gate = world.loop.create_future()
        for name in ("a", "b"):
            world.loop.create_task(victim(name, gate), context=world.context_of(process))
        await asyncio.sleep(0.5)
        world.loop.kill(process)
        gate.set_result(None)
        await asyncio.sleep(5)

    world.run(main())
    assert ran == []
    assert world.loop.unhandled == []


def test_a_process_may_kill_itself() -> None:
    world = World(1)
    process = Process("victim")
    ran: list[str] = []

    async def victim() -> None:
        try:
            world.loop.kill(process)
            process.check()
        except Exception:  # the crash must not be swallowed here
            ran.append("swallowed")
        ran.append("went on")

    async def main() -> None:
        task = world.loop.create_task(victim(), context=world.context_of(process))
        await asyncio.sleep(1)
        with pytest.raises(ProcessCrashed):
            task.result()

    world.run(main())
    assert ran == []


def test_unhandled_errors_are_noted() -> None:
    world = World(1)

    async def main() -> None:
        world.loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    world.run(main())
    assert "ZeroDivisionError" in world.loop.unhandled[0]


def test_what_the_cleanup_of_a_dead_process_begins_never_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1)
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    process = Process("victim")
    ran: list[str] = []

    async def more() -> None:
        ran.append("more")

    async def victim() -> None:
        try:
            await asyncio.sleep(9)
        finally:
            begun = asyncio.create_task(more())
            try:
                await asyncio.sleep(1)
            finally:
                await begun

    async def caller() -> None:
        await victim()

    async def main() -> None:
        world.loop.create_task(caller(), context=world.context_of(process))
        await asyncio.sleep(0.5)
        world.loop.kill(process)
        await asyncio.sleep(20)

    world.run(main())
    gc.collect()
    assert (ran, ignored) == ([], [])
    assert world.loop.unhandled == []


def test_nobody_needs_to_look_at_what_became_of_a_crashed_process() -> None:
    world = World(1)

    def leave_behind() -> None:
        world.loop.create_future().set_exception(ValueError("nobody looks"))

    async def fail() -> None:
        raise ValueError("nobody looks")

    async def main() -> None:
        for crashed in (True, False):
            process = Process("victim")
            process.has_crashed = crashed
            context = world.context_of(process)
            context.run(leave_behind)
            world.loop.create_task(fail(), context=context)
            await asyncio.sleep(0.01)
            process.tasks.clear()
            gc.collect()
            assert len(world.loop.unhandled) == (0 if crashed else 2)

    world.run(main())
