"""One blow of the plan against a node whose clients have to live with it, and its recovery from that."""

import asyncio
from collections.abc import Iterable

from odradek.sim.stories.plan import Blow, Episode
from odradek.sim.world.cluster import CrashKind, NodeCrashed, SimHost
from odradek.sim.world.world import World

_STRUCK_BY = frozenset(
    {Blow.CRASH_IN_A_CALL, Blow.CRASH, Blow.RESTART, Blow.PARTITION, Blow.RESET, Blow.CLOCK_JUMP}
)


async def strike(
    world: World, host: SimHost, episode: Episode, clients: Iterable[str], *, power: bool
) -> str:
    """Strike, and wait until it is overcome; tells what it was. `power`: nothing that was acknowledged can be
    lost with it, since everything is flushed before."""
    network = world.network
    blow = episode.blow if episode.blow in _STRUCK_BY else Blow.CRASH_IN_A_CALL
    kind = episode.kind if power else CrashKind.KILL
    world.trace.event("plan", blow.value)
    story = f"{world.loop.time():8.3f} s  {blow.value}"
    match blow:
        case Blow.CRASH:
            host.crash(kind)
        case Blow.CRASH_IN_A_CALL:
            host.crash_after(episode.calls % 60, kind)
            try:
                await asyncio.wait_for(host.dead(), 1)
            except TimeoutError:
                host.crash(kind)
        case Blow.PARTITION:
            for name in clients:
                network.partition(host.name, name)
            await asyncio.sleep(episode.seconds / 4)
            network.heal()
            return story
        case Blow.RESET:
            network.reset_connections(host.name)
            return story
        case Blow.CLOCK_JUMP:
            host.clock.skew_ms += int((episode.seconds - 7) * 1000)
            return story
        case _:
            await host.stop()
    await asyncio.sleep(episode.seconds / 50)
    fuse = None if episode.crash_in_recovery is None else (episode.crash_in_recovery, kind)
    while True:
        try:
            await host.start(fuse)
        except NodeCrashed:
            fuse = None
            continue
        host.call_off_crash()
        return story
