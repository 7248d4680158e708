"""One process can be paused while all others run, and it is late afterwards."""

import asyncio

import pytest

from odradek.sim.world.cluster import CrashKind, SimHost
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.world import World
from tests.sim.toy import ToyClient, ToyNode


class Beating:
    """Notes when it runs, ten times in a second."""

    def __init__(self, runtime: SimRuntime, data_dir: str) -> None:
        self.beats: list[float] = []

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def stop(self) -> None:
        self._task.cancel()

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0.1)
            self.beats.append(loop.time())


def _beats(host: SimHost, since: float, until: float) -> int:
    assert isinstance(host.node, Beating)
    return sum(since < beat < until for beat in host.node.beats)


def test_a_paused_process_runs_nothing_until_it_is_resumed() -> None:
    world = World(1)
    paused, other = SimHost(world, "paused", Beating), SimHost(world, "other", Beating)

    async def main() -> None:
        await paused.start()
        await other.start()
        await asyncio.sleep(1.05)
        paused.pause()
        await asyncio.sleep(3)
        paused.resume()
        await asyncio.sleep(1)
        assert _beats(paused, 0, 1.05) == 10
        assert _beats(paused, 1.05, 4.05) == 0
        assert _beats(other, 1.05, 4.05) == 30
        # The timer that was due meanwhile fires at once, not at its time.
        assert _beats(paused, 4.05, 4.06) == 1
        assert _beats(paused, 4.05, 5.05) == 10

    world.run(main())


def test_a_stall_holds_up_one_process_only() -> None:
    world = World(1)
    stalled, other = SimHost(world, "stalled", Beating), SimHost(world, "other", Beating)

    async def main() -> None:
        await stalled.start()
        await other.start()
        await asyncio.sleep(1.05)
        stalled.stall(0.5)
        assert world.loop.time() == pytest.approx(1.05, abs=0.01)
        await asyncio.sleep(1)
        assert _beats(stalled, 1.05, 1.55) == 0
        assert _beats(stalled, 1.55, 1.56) == 1
        assert _beats(other, 1.05, 1.55) == 5

    world.run(main())


def test_code_that_stalls_sees_the_time_that_it_took() -> None:
    world = World(1)
    runtime = world.runtime("node")
    runtime.sim_disk.faults.stall = 1
    runtime.sim_disk.faults.stall_seconds = 1
    seen: list[float] = []

    async def node() -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        runtime.disk.makedirs("/data")
        seen.append(loop.time() - before)
        await asyncio.sleep(0)
        seen.append(world.loop._now - before)

    async def main() -> None:
        before = world.loop.time()
        task = world.loop.create_task(node(), context=world.context_of(runtime.process))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert world.loop.time() - before < 0.001
        await task

    world.run(main())
    assert 0.001 < seen[0] < 1
    # What it does next happens after the stall, for all others too.
    assert seen[1] == pytest.approx(seen[0], abs=0.001)


def test_what_is_sent_after_a_stall_arrives_after_it() -> None:
    world = World(1)
    server, client = world.runtime("server"), world.runtime("client")

    async def send() -> None:
        sock = await client.net.connect("server", 9092)
        world.loop.stall(client.process, 5)
        sock.send(b"late")

    async def main() -> None:
        listener = server.net.listen("", 9092)
        await world.loop.create_task(send(), context=world.context_of(client.process))
        sock = listener.accept()
        await asyncio.sleep(4.9)
        with pytest.raises(BlockingIOError):
            sock.recv_into(bytearray(9))
        await asyncio.sleep(0.2)
        assert sock.recv_into(bytearray(9)) == 4

    world.run(main())


def test_what_was_held_back_runs_in_the_order_in_which_it_was_scheduled() -> None:
    world = World(1)
    process = world.runtime("node").process
    ran: list[int] = []

    async def main() -> None:
        context = world.context_of(process)
        world.loop.stall(process, 1)
        for number in range(3):
            world.loop.call_soon(ran.append, number, context=context)
        # Due at the very end of the stall, before and after the process goes on.
        for number in range(3, 9):
            world.loop.call_at(process.busy_until_s, ran.append, number, context=context)
        await asyncio.sleep(0.9)
        assert ran == []
        await asyncio.sleep(0.2)

    world.run(main())
    assert ran[:3] == [0, 1, 2]
    assert sorted(ran) == list(range(9))


def test_a_paused_node_is_connected_to_and_answers_when_it_is_resumed() -> None:
    world = World(1)
    host = SimHost(world, "node", ToyNode)

    async def main() -> None:
        await host.start()
        client = ToyClient(world.runtime("client"), "client", 10)
        host.pause()
        task = world.loop.create_task(client.run(["node"], 3))
        await asyncio.sleep(2)
        assert len(client.sent) == 1
        assert not client.acknowledged
        host.resume()
        await task
        assert len(client.acknowledged) > 10

    world.run(main())
    assert world.loop.unhandled == []


def test_the_buffers_of_a_paused_process_fill() -> None:
    world = World(1)
    world.network.faults.buffer_bytes = 1000
    host = SimHost(world, "node", ToyNode)

    async def main() -> None:
        await host.start()
        sock = await world.runtime("client").net.connect("node", 9092)
        host.pause()
        sent = 0
        for _ in range(20):
            try:
                sent += sock.send(b"\0" * 300)
            except BlockingIOError:
                break
            await asyncio.sleep(0.1)
        assert sent == 1000

    world.run(main())


def test_a_paused_process_can_be_killed() -> None:
    world = World(1)
    host = SimHost(world, "node", Beating)

    async def main() -> None:
        await host.start()
        node = host.node
        assert isinstance(node, Beating)
        await asyncio.sleep(1.05)
        host.pause()
        await asyncio.sleep(1)
        host.crash(CrashKind.KILL)
        await host.start()
        await asyncio.sleep(1.05)
        assert len(node.beats) == 10
        assert _beats(host, 0, 10) == 10

    world.run(main())


def test_a_long_pause_takes_no_turns() -> None:
    """Sockets that are ready do not spin the loop while nobody can look at them."""
    world = World(1)
    world.loop.max_turns = 10_000
    host = SimHost(world, "node", ToyNode)

    async def main() -> None:
        await host.start()
        sock = await world.runtime("client").net.connect("node", 9092)
        sock.send(b"\0\0\0\1x")
        host.pause()
        await asyncio.sleep(1)
        turns = world.loop.turns
        await asyncio.sleep(1000)
        assert world.loop.turns - turns < 10

    world.run(main())
