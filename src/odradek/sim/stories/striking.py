"""Carries out one fault of the plan on one host, until it is over or the node is down."""

import asyncio

from odradek.sim.stories.node_log import NodeLog
from odradek.sim.stories.outcome import Over
from odradek.sim.stories.plan import Blow, Direction, Episode
from odradek.sim.world.cluster import CrashKind, SimHost
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.world import World

SUFFERING_SECONDS = 2.0
MAX_STALL_SECONDS = 0.1
STALLS = 8


async def strike(world: World, host: SimHost, episode: Episode, log: NodeLog) -> None:
    """Inject the fault, and wait until it is over. If the host is down then, the caller starts it."""
    match episode.blow:
        case Blow.CRASH:
            host.crash(episode.kind)
        case Blow.CRASH_IN_A_CALL:
            await _crash_in_a_call(host, episode)
        case Blow.RESTART:
            await host.stop()
        case Blow.PARTITION | Blow.CUT:
            await _cut_off(world, host, episode)
        case Blow.RESET:
            world.network.reset_connections(host.name)
        case Blow.PAUSE:
            host.pause()
            await asyncio.sleep(episode.seconds)
            host.resume()
        case Blow.STALLS:
            for index in range(STALLS):
                host.stall(MAX_STALL_SECONDS / (index + 1))
                await asyncio.sleep(episode.seconds / STALLS)
        case Blow.CLOCK_JUMP:
            host.clock.skew_ms += episode.jump_ms
        case Blow.CLOCK_DRIFT:
            host.run_clock_at(episode.rate)
        case Blow.DISK_ERROR:
            host.faults.rules = [DiskFault(episode.errno, [episode.operation], "*", 0.5, times=3)]
            await _suffer(host, episode.kind, log)
            host.faults.rules = []
        case Blow.DISK_FULL:
            host.volume.capacity_bytes = host.volume.used_bytes() + episode.calls
            await _suffer(host, episode.kind, log)
            host.volume.capacity_bytes = None


async def _crash_in_a_call(host: SimHost, episode: Episode) -> None:
    host.crash_after(episode.calls, episode.kind)
    try:
        await asyncio.wait_for(host.dead(), episode.patience_seconds)
    except TimeoutError:
        host.crash(episode.kind)


async def _cut_off(world: World, host: SimHost, episode: Episode) -> None:
    """Cut off the traffic to the host, from it, or both."""
    network = world.network
    for other in world.hosts():
        if other == host.name:
            continue
        if episode.direction is not Direction.FROM_HOST:
            network.cut(other, host.name)
        if episode.direction is not Direction.TO_HOST:
            network.cut(host.name, other)
    await asyncio.sleep(episode.seconds)
    network.heal()


async def _suffer(host: SimHost, kind: CrashKind, log: NodeLog) -> None:
    """Run with a failing disk, which may log errors but must not end the node; then crash."""
    with log.forgiving():
        await asyncio.sleep(SUFFERING_SECONDS)
    if not host.alive:
        raise Over("a failing disk ended the process")
    host.crash(kind)
