"""Proves the simulator on a toy node: seeds replay, crashes hurt what they should, planted bugs are seen."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from odradek.sim.world.cluster import CrashKind, NodeCrashed, SimHost
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.world import World
from tests.sim.toy import ToyClient, ToyNode


class Outcome:
    def __init__(self, world: World, host: SimHost, clients: list[ToyClient]) -> None:
        self.world = world
        self.host = host
        self.acknowledged: dict[bytes, int] = {}
        for client in clients:
            self.acknowledged.update({sent: number for sent, (_, number) in client.acknowledged.items()})
        self.sent = {payload for client in clients for payload in client.sent}
        node = host.node
        assert isinstance(node, ToyNode)
        self.entries = node.entries


def play(
    seed: int,
    kind: CrashKind,
    *,
    seconds: float = 30,
    calls: int = 400,
    payload_bytes: int = 3000,
    factory: Callable[[SimRuntime, str], ToyNode] = ToyNode,
) -> Outcome:
    """Clients append while the node crashes every few seconds at some system call, then a last restart."""
    world = World(seed)
    faults = world.network.faults
    faults.short_count = faults.fragment = 0.1
    faults.slow = faults.reset = 0.01
    host = SimHost(world, "node", factory)
    host.faults.short_write = 0.05
    rng = world.rng_for("plan")

    async def main() -> Outcome:
        await host.start()
        clients = [ToyClient(world.runtime(f"client{i}"), f"client{i}", payload_bytes) for i in range(4)]
        tasks = [world.loop.create_task(client.run(["node"], seconds)) for client in clients]
        while world.loop.time() < seconds - 5:
            host.crash_after(rng.randrange(calls), kind)
            try:
                await asyncio.wait_for(host.dead(), 20)
            except TimeoutError:
                host.crash(kind)
            await asyncio.sleep(rng.random())
            await host.start()
        for task in tasks:
            await task
        return Outcome(world, host, clients)

    return world.run(main())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", list(CrashKind))
def test_a_node_that_flushes_loses_nothing(seed: int, kind: CrashKind) -> None:
    outcome = play(seed, kind)
    assert outcome.host.lives > 5
    assert len(outcome.acknowledged) > 100
    assert set(outcome.entries) <= outcome.sent
    assert all(outcome.entries[number] == payload for payload, number in outcome.acknowledged.items())
    assert outcome.world.loop.unhandled == []


def _loses(seed: int, kind: CrashKind, factory: Callable[[SimRuntime, str], ToyNode]) -> bool:
    outcome = play(seed, kind, factory=factory)
    kept = dict(enumerate(outcome.entries))
    return any(kept.get(number) != payload for payload, number in outcome.acknowledged.items())


def test_acknowledging_before_flushing_is_caught_at_power_loss_only() -> None:
    def careless(runtime: SimRuntime, data_dir: str) -> ToyNode:
        return ToyNode(runtime, data_dir, flush=False)

    assert any(_loses(seed, CrashKind.POWER, careless) for seed in range(5))
    assert not any(_loses(seed, CrashKind.KILL, careless) for seed in range(2))


def test_forgetting_to_cut_a_torn_tail_is_caught() -> None:
    def careless(runtime: SimRuntime, data_dir: str) -> ToyNode:
        return ToyNode(runtime, data_dir, recover=False)

    assert any(_loses(seed, CrashKind.POWER, careless) for seed in range(5))


def test_a_seed_replays_to_the_same_trace() -> None:
    one, two, other = (play(seed, CrashKind.POWER).world.trace for seed in (7, 7, 8))
    assert one.digest() == two.digest()
    assert one.digest() != other.digest()


def test_a_seed_replays_in_another_process_over_50k_events() -> None:
    script = (
        "from tests.sim.test_world import play; from odradek.sim.world.cluster import CrashKind;"
        "trace = play(11, CrashKind.POWER, seconds=60, calls=9000, payload_bytes=50).world.trace;"
        "print(trace.count, trace.digest())"
    )
    outputs = []
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": "src:."}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout.split())
    assert int(outputs[0][0]) > 50_000
    assert outputs[0] == outputs[1]


def test_a_clean_stop_is_checked_for_leaks() -> None:
    def run(*, leak: bool) -> list[str]:
        world = World(1)
        host = SimHost(world, "node", lambda runtime, path: ToyNode(runtime, path, leak=leak))

        async def main() -> None:
            await host.start()
            await world.runtime("client").net.connect("node", 9092)
            await asyncio.sleep(1)
            await host.stop()
            await host.start()

        world.run(main())
        return host.leaks

    assert run(leak=False) == []
    assert run(leak=True) == ["node left a file behind: /data/log"]


def test_a_crash_during_start_is_told() -> None:
    world = World(1)
    host = SimHost(world, "node", ToyNode)

    class Failing(ToyNode):
        async def start(self) -> None:
            host.crash_after(0, CrashKind.KILL)
            await super().start()

    host._factory = Failing

    async def main() -> None:
        with pytest.raises(NodeCrashed):
            await host.start()

    world.run(main())


def test_an_error_of_the_start_is_raised() -> None:
    class Failing(ToyNode):
        async def start(self) -> None:
            raise ValueError("cannot start")

    world = World(1)
    host = SimHost(world, "node", Failing)

    async def main() -> None:
        with pytest.raises(ValueError, match="cannot start"):
            await host.start()

    world.run(main())
