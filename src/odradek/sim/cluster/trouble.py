"""What happens to the nodes of a simulated cluster: several faults at a time, the leader's more often.

A host meets one fault of its process at a time; links are cut beside that. What is killed is started again,
as a supervisor does it. `run` ends when the last fault is over; nodes may still be starting then.
"""

import asyncio
import errno
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from odradek.broker.lifecycle import RegistrationError
from odradek.sim.stories.node_log import NodeLog
from odradek.sim.world.clock import MAX_RATE, MIN_RATE
from odradek.sim.world.cluster import CrashKind, NodeCrashed, SimHost
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.world import World

_HANDS: Final = 2
_LEADER: Final = 0.5
_MAX_STALL_SECONDS: Final = 1.5
_STALLS: Final = 5
_HOUR_MS: Final = 3_600_000
_RESTART_SECONDS: Final = 0.5

_CHANCES: Final = {
    "_kill": 10,
    "_crash_in_a_call": 8,
    "_ambush": 4,
    "_restart": 4,
    "_blackout": 2,
    "_pause": 8,
    "_stall": 4,
    "_isolate": 12,
    "_cut_one_way": 12,
    "_reset": 4,
    "_jump": 2,
    "_drift": 2,
    "_disk_fails": 3,
}
_KINDS, _WEIGHTS = list(_CHANCES), list(_CHANCES.values())


class Trouble:
    """`note` hears of every fault; `is_leader` says whether the node of a host leads the quorum."""

    def __init__(
        self,
        world: World,
        hosts: Mapping[str, SimHost],
        note: Callable[[str], None],
        is_leader: Callable[[SimHost], bool],
        log: NodeLog,
        *,
        longest_seconds: float,
        pace_seconds: float,
    ) -> None:
        self._world = world
        self._hosts = hosts
        self._note = note
        self._is_leader = is_leader
        self._log = log
        self._longest_seconds = longest_seconds
        self._pace_seconds = pace_seconds
        self._rng = world.rng_for("trouble")
        self._busy: set[str] = set()
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._ambushes = 0
        self._rising: dict[str, asyncio.Task[None]] = {}
        self._is_over = False

    async def run(self, until: float) -> None:
        loop = self._world.loop
        hands = [loop.create_task(self._hand(until), name=f"trouble{i}") for i in range(_HANDS)]
        for hand in hands:
            await hand
        self._is_over = True
        self._ambushes = 0
        self._world.network.heal()
        for host in self._hosts.values():
            host.run_clock_at(1.0)
            if host.alive:
                host.call_off_crash()

    async def until_up(self) -> None:
        """Until every node that fell has started again."""
        while self._rising:
            await next(iter(self._rising.values()))

    def on_leader(self, host: SimHost) -> None:
        """A node begins to lead: some fall at once."""
        if self._ambushes and host.name not in self._busy and not self._is_over:
            self._ambushes -= 1
            self._take(host)
            self._world.loop.create_task(self._fall(host), name=f"ambush of {host.name}")

    async def _hand(self, until: float) -> None:
        rng, loop = self._rng, self._world.loop
        while True:
            await asyncio.sleep(rng.expovariate(1 / self._pace_seconds))
            if loop.time() >= until:
                return
            await getattr(self, rng.choices(_KINDS, _WEIGHTS)[0])()

    def _victim(self) -> SimHost | None:
        """Some host that nothing else happens to, the leader's more often than others."""
        free = [
            host for host in self._hosts.values() if host.name not in self._busy and host.node is not None
        ]
        leaders = [host for host in free if self._is_leader(host)]
        if leaders and self._rng.random() < _LEADER:
            return self._rng.choice(leaders)
        return self._rng.choice(free) if free else None

    def _seconds(self) -> float:
        return self._rng.uniform(0.03, 1) ** 2 * self._longest_seconds

    def _take(self, host: SimHost) -> None:
        self._busy.add(host.name)

    def _kind(self) -> CrashKind:
        return self._rng.choice(list(CrashKind))

    # --- processes ------------------------------------------------------------------------------------

    async def _kill(self) -> None:
        host = self._victim()
        if host is not None:
            self._take(host)
            kind = self._kind()
            self._note(f"{host.name}: {kind.value}")
            host.crash(kind)
            self._raise_later(host)

    async def _crash_in_a_call(self) -> None:
        host = self._victim()
        if host is not None:
            self._take(host)
            await self._fall(host)

    async def _fall(self, host: SimHost) -> None:
        """In the middle of a system call, soon."""
        calls, kind = int(self._rng.paretovariate(0.5)) % 200, self._kind()
        self._note(f"{host.name}: {kind.value} after {calls} calls")
        host.crash_after(calls, kind)
        try:
            await asyncio.wait_for(host.dead(), 2.0)
        except TimeoutError:
            host.crash(kind)
        self._raise_later(host)

    async def _ambush(self) -> None:
        self._ambushes = 1 + self._rng.randrange(2)

    async def _restart(self) -> None:
        host = self._victim()
        if host is not None:
            self._take(host)
            self._note(f"{host.name}: orderly restart")
            await host.stop()
            self._raise_later(host)

    async def _blackout(self) -> None:
        """Power for nobody."""
        hosts = [
            host for host in self._hosts.values() if host.name not in self._busy and host.node is not None
        ]
        self._note("power loss of all nodes")
        for host in hosts:
            self._take(host)
            host.crash(CrashKind.POWER)
        for host in hosts:
            self._raise_later(host)

    async def _pause(self) -> None:
        host = self._victim()
        if host is not None:
            self._take(host)
            seconds = self._seconds()
            self._note(f"{host.name}: stopped for {seconds:.1f} s")
            host.pause()
            await asyncio.sleep(seconds)
            host.resume()
            self._busy.discard(host.name)

    async def _stall(self) -> None:
        host = self._victim()
        if host is not None:
            self._take(host)
            self._note(f"{host.name}: stalls")
            for _ in range(_STALLS):
                seconds = self._rng.random() * _MAX_STALL_SECONDS
                host.stall(seconds)
                await asyncio.sleep(seconds + self._rng.random() * _MAX_STALL_SECONDS)
            self._busy.discard(host.name)

    async def _jump(self) -> None:
        host = self._rng.choice(list(self._hosts.values()))
        jump_ms = self._rng.randint(-_HOUR_MS, _HOUR_MS)
        self._note(f"{host.name}: wall clock jumps by {jump_ms} ms")
        host.clock.skew_ms += jump_ms

    async def _drift(self) -> None:
        host = self._rng.choice(list(self._hosts.values()))
        rate = self._rng.uniform(MIN_RATE, MAX_RATE)
        self._note(f"{host.name}: clocks run at {rate:.2f}")
        host.run_clock_at(rate)

    async def _disk_fails(self) -> None:
        """Some writes or syncs of the metadata log fail, and the machine is started anew."""
        host = self._victim()
        if host is not None:
            self._take(host)
            call = self._rng.choice(("pwrite", "fsync"))
            self._note(f"{host.name}: {call} of the metadata log fails")
            with self._log.forgiving():
                host.faults.rules = [DiskFault(errno.EIO, [call], "*/__cluster_metadata-0/*", 0.5, times=3)]
                await asyncio.sleep(self._seconds())
            host.faults.rules = []
            host.crash(CrashKind.POWER)
            self._raise_later(host)

    def _raise_later(self, host: SimHost) -> None:
        self._rising[host.name] = self._world.loop.create_task(self._rise(host), name=f"start {host.name}")

    async def _rise(self, host: SimHost) -> None:
        rng = self._rng
        await asyncio.sleep(self._seconds() if not self._is_over else 0)
        fuse = None if self._is_over or rng.random() < 0.7 else (rng.randrange(100), self._kind())
        while True:
            try:
                await host.start(fuse)
                break
            except NodeCrashed:
                self._note(f"{host.name}: crash in its start")
            except RegistrationError as e:
                self._note(f"{host.name}: ended, {e}")
                host.crash(CrashKind.KILL)
                await asyncio.sleep(_RESTART_SECONDS)
            fuse = None
        host.call_off_crash()
        self._busy.discard(host.name)
        del self._rising[host.name]

    # --- links ----------------------------------------------------------------------------------------

    async def _isolate(self) -> None:
        """Cut a node off from the other nodes: both ways or one way. Clients reach it all the same."""
        host = self._victim()
        if host is not None:
            others = [name for name in self._hosts if name != host.name]
            way = self._rng.choice(("in both directions", "nothing arrives", "nothing leaves"))
            links = [] if way == "nothing leaves" else [(other, host.name) for other in others]
            links += [] if way == "nothing arrives" else [(host.name, other) for other in others]
            await self._cut(links, f"{host.name}: cut off from the other nodes, {way}")

    async def _cut_one_way(self) -> None:
        source, target = self._rng.sample(list(self._hosts), 2)
        await self._cut([(source, target)], f"{source} does not reach {target}")

    async def _cut(self, links: Iterable[tuple[str, str]], text: str) -> None:
        links = list(links)
        seconds = self._seconds()
        self._note(f"{text}, {seconds:.1f} s")
        for link in links:
            self._cuts[link] += 1
            self._world.network.cut(*link)
        await asyncio.sleep(seconds)
        for link in links:
            self._cuts[link] -= 1
            if not self._cuts[link]:
                self._world.network.mend(*link)

    async def _reset(self) -> None:
        name = self._rng.choice(list(self._hosts))
        self._note(f"{name}: all connections reset")
        self._world.network.reset_connections(name)


def draw_trouble(rng: random.Random) -> dict[str, float]:
    """How long faults last at most, and how long it is between two."""
    return {"longest_seconds": rng.choice((2.0, 6.0, 12.0)), "pace_seconds": rng.choice((0.5, 1.5, 3.0))}
