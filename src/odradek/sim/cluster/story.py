"""The story of a cluster: whole nodes under virtual time, and the faults of the seed.

Three nodes that are broker and controller each, or three controllers and two brokers. Clients create and
delete topics and take producer ids while nodes are killed, lose their power, are paused and cut off. Then
all is healed: the cluster must create topics again, and every node must show what clients were answered.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from odradek.broker.node import Node
from odradek.core.errors import ErrorCode
from odradek.sim.cluster.checks import LIVENESS, Checker
from odradek.sim.cluster.deployment import BROKER_PORT, CONTROLLER_PORT, Deployment, Layout, Member
from odradek.sim.cluster.trouble import Trouble, draw_trouble
from odradek.sim.cluster.watching import Watcher, leads, raft_of
from odradek.sim.cluster.workload import FIRST_VERSIONS, NAMES, BlockTaker, ProducerIdTaker, TopicAdmin
from odradek.sim.stories.outcome import Outcome, Over
from odradek.sim.stories.story import Story, Tasks
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.sim.world.cluster import NodeFactory
from odradek.sim.world.disk import DiskFaults
from odradek.sim.world.network import NetFaults

SECONDS: Final = 30.0
HEAL_SECONDS: Final = 20.0
"""How long a healed cluster may take until it creates a topic, and until all nodes show it."""
ADMINS: Final = 3
_LOOK_SECONDS: Final = 0.1


def draw_settings(rng: random.Random) -> dict[str, str]:
    """Timeouts and snapshots, between the defaults and very short ones."""
    settings = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
    if rng.random() < 0.6:
        settings |= {
            "controller.quorum.election.timeout.ms": "300",
            "controller.quorum.fetch.timeout.ms": "500",
            "controller.quorum.request.timeout.ms": "500",
            "controller.quorum.election.backoff.max.ms": "200",
        }
    if rng.random() < 0.6:
        settings |= {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "400"}
    settings["metadata.log.max.snapshot.interval.ms"] = rng.choice(("700", "4000", "3600000"))
    settings["metadata.log.max.record.bytes.between.snapshots"] = rng.choice(("600", "20971520"))
    settings["metadata.max.retention.bytes"] = rng.choice(("1", "6000", "104857600"))
    return settings


class ClusterStory(Story):
    def __init__(
        self,
        seed: int,
        *,
        seconds: float = SECONDS,
        layout: Layout | None = None,
        has_trouble: bool = True,
        sink: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(seed, seconds=seconds, sink=sink)
        rng = self.rng
        layout = layout or rng.choice(list(Layout))
        settings = draw_settings(rng)
        is_static = rng.random() < 0.3
        self.deployment = Deployment(layout, rng, is_static=is_static, settings=settings)
        for member in self.deployment.members:
            host = self.add_host(member.host, self._factory(member))
            runtime = self.world.runtime(member.host, f"{member.host}.format", volume=host.volume)
            self.deployment.format(member, runtime)
            self.world.loop.kill(runtime.process)
        self.checker = Checker()
        self.watcher = Watcher(self.hosts, self.checker)
        self.world.loop.after_turn = self.watcher.look
        self.note(f"{layout.name.lower()}, kraft.version {0 if is_static else 1}, {settings}")
        self._happened: dict[str, int] = {}
        self._trouble: Trouble | None = None
        if has_trouble:
            self._trouble = Trouble(self.world, self.hosts, self.note, leads, self.log, **draw_trouble(rng))
            self.watcher.on_leader = self._trouble.on_leader

    def _factory(self, member: Member) -> NodeFactory:
        return lambda runtime, data_dir: self.deployment.node(member, runtime)

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return [(broker.host, BROKER_PORT) for broker in self.deployment.brokers]

    def nodes(self) -> dict[str, Node]:
        """Those that run, or are starting."""
        return {name: host.node for name, host in self.hosts.items() if isinstance(host.node, Node)}

    # -- the story

    async def prepare(self) -> None:
        """Nothing is needed."""

    def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        world, checker = self.world, self.checker
        for index in range(ADMINS):
            name = f"admin{index}"
            admin = TopicAdmin(self._admin_caller(name), checker, world.rng_for(f"{name}:doings"), NAMES, 0.3)
            yield name, admin.run(self.seconds)
        name = "producers"
        rng = world.rng_for(f"{name}:doings")
        yield name, ProducerIdTaker(name, self.caller(name), checker, rng, 0.3).run(self.seconds)
        name = "blocks"
        rng = world.rng_for(f"{name}:doings")
        controllers = [(member.host, CONTROLLER_PORT) for member in self.deployment.controllers]
        caller = Caller(world.runtime(name), controllers, name, world.rng_for(f"{name}:versions"))
        yield name, BlockTaker(name, caller, checker, rng, 0.5, self._registered).run(self.seconds)

    def _admin_caller(self, name: str) -> Caller:
        caller = self.caller(name, FIRST_VERSIONS)
        for _ in range(self.rng.randrange(len(self.bootstrap))):
            caller.move_on()
        return caller

    def _registered(self) -> Sequence[tuple[int, int]]:
        for node in self.nodes().values():
            brokers = node.metadata.image.brokers
            if brokers:
                return [(broker.id, broker.epoch) for broker in brokers.values()]
        return ()

    async def trouble(self, clients: Tasks) -> None:
        if self._trouble is None:
            await asyncio.sleep(self.seconds)
            return
        await self._trouble.run(self.seconds)
        self.world.network.faults.__dict__.update(NetFaults().__dict__)
        for host in self.hosts.values():
            host.faults.__dict__.update(DiskFaults().__dict__)
        self.note("healed")

    async def conclude(self, clients: Tasks) -> None:
        await self._within(self._create_a_topic(), "no CreateTopics was answered")
        if self._trouble is not None:
            await self._within(self._trouble.until_up(), "a node does not start")
        for client in clients:
            await client
        await self._within(self._all_show_the_same(), "the nodes do not come to the same offset")
        for name, node in self.nodes().items():
            self.checker.check_topics(name, node.metadata.image.topics_by_id)
        self._happened = self.checker.counters.as_dict()

    async def _within(self, work: Coroutine[Any, Any, None], failure: str) -> None:
        try:
            await asyncio.wait_for(work, HEAL_SECONDS)
        except TimeoutError:
            self.checker.fail(LIVENESS, f"{failure} within {HEAL_SECONDS:.0f} s")
            raise Over from None

    async def _create_a_topic(self) -> None:
        admin = TopicAdmin(self._admin_caller("last"), self.checker, self.rng, (), 1)
        code, tries = None, 0
        while code is not ErrorCode.NONE:
            tries += 1  # one that was not answered may have created its topic
            try:
                code = await admin.create(f"last{tries}")
            except NoAnswer:
                pass
            await asyncio.sleep(_LOOK_SECONDS)

    async def _all_show_the_same(self) -> None:
        """Until all nodes have what the quorum had decided when everybody was done."""
        end = max(raft.high_watermark for raft in map(raft_of, self.nodes().values()) if raft is not None)
        while any(node.metadata.applied_offset < end - 1 for node in self.nodes().values()):
            await asyncio.sleep(_LOOK_SECONDS)

    async def stop(self) -> None:
        await asyncio.gather(*(host.stop() for host in self.hosts.values()))

    # -- evidence

    def collect(self) -> None:
        self.outcome.violations += self.checker.violations
        self.checker.violations.clear()
        super().collect()

    def count(self, outcome: Outcome) -> None:
        """What the stop of all nodes causes proves nothing."""
        outcome.happened = self._happened or self.checker.counters.as_dict()
