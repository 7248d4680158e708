"""Proves that the storage engine alone survives crashes at any system call with what it promised."""

import asyncio

import pytest

from odradek.sim.checkers import logs as checkers
from odradek.sim.checkers.history import History
from odradek.sim.checkers.platter import flushed_records
from odradek.sim.world.cluster import CrashKind, NodeCrashed, SimHost
from odradek.sim.world.world import World
from tests.sim.log_node import FLUSHED, PLAIN, LogNode


def play(seed: int, lives: int = 20) -> tuple[list[str], History]:
    world = World(seed)
    history = History({FLUSHED.topic})
    host = SimHost(world, "node", lambda runtime, path: LogNode(runtime, path, history, host.lives))
    host.faults.short_write = 0.02
    rng = world.rng_for("plan")
    expected: dict[object, dict[int, bytes]] = {}

    def before_crash(kind: CrashKind) -> None:
        if kind is CrashKind.POWER:
            flushed = {
                tp: {record.offset: record.value or b"" for record in records}
                for tp, records in flushed_records(host.volume, "/data").items()
            }
            for tp, records in flushed.items():
                expected.setdefault(tp, {}).update(records)
            history.power_lost(flushed)

    host.before_crash.append(before_crash)

    def audit() -> list[str]:
        node = host.node
        assert isinstance(node, LogNode)
        found = []
        for tp in (FLUSHED, PLAIN):
            present = node.read_all(tp)
            log = node.manager.logs[tp]
            must = {**history.acknowledged.get(tp, {}), **expected.get(tp, {})}
            found += checkers.missing_records(tp, must, present)
            found += checkers.holes(tp, present, log.log_start_offset, log.log_end_offset)
            found += checkers.invented_records(tp, present, history.sent)
            found += checkers.broken_order(tp, present, history.sent)
            history.survived(tp, present)
        expected.clear()
        return found

    async def main() -> list[str]:
        found: list[str] = []
        while host.lives < lives and not found:
            fuse = (rng.randrange(80), rng.choice(list(CrashKind))) if rng.random() < 0.3 else None
            try:
                await host.start(fuse)
            except NodeCrashed:
                continue
            host.call_off_crash()
            found += audit()
            await asyncio.sleep(rng.uniform(0, 4))
            kind = rng.choice((CrashKind.KILL, CrashKind.POWER, None))
            if kind is None:
                await host.stop()
                found += host.leaks
            else:
                host.crash_after(rng.randrange(60), kind)
                await host.dead()
        return found + history.oddities + world.loop.unhandled

    return world.run(main()), history


@pytest.mark.parametrize("seed", range(3))
def test_a_log_keeps_what_it_flushed_and_invents_nothing(seed: int) -> None:
    found, history = play(seed)
    assert found == []
    assert history.acknowledged_records > 500
