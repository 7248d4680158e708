"""The story of replication: whole nodes under virtual time, replicated topics, and the faults of the seed.

Three nodes that are broker and controller each, or with two brokers more. Producers, consumers and groups use
topics of one to three replicas while nodes are killed, lose their power, are paused and cut off. Then all is
healed: every partition must have its whole ISR again, and its replicas must be equal.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from odradek.core.errors import ErrorCode
from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.sim.cluster.deployment import BROKER_PORT, Deployment, Member, ReplicatedLayout
from odradek.sim.cluster.trouble import Trouble, draw_trouble
from odradek.sim.cluster.watching import leads
from odradek.sim.replication import rules
from odradek.sim.replication.administering import Administering, creatable, draw_configs
from odradek.sim.replication.at_rest import check_at_rest
from odradek.sim.replication.checker import Checker
from odradek.sim.replication.clients import (
    ACKS_ALL,
    Client,
    Committing,
    Consuming,
    Producing,
    Router,
    Stop,
)
from odradek.sim.replication.resting import resting, restless
from odradek.sim.replication.watching import ReplicationWatcher
from odradek.sim.stories.outcome import Outcome, Over
from odradek.sim.stories.story import Story, Tasks
from odradek.sim.workloads.caller import NoAnswer
from odradek.sim.world.cluster import NodeFactory, SimHost
from odradek.sim.world.disk import DiskFaults
from odradek.sim.world.network import NetFaults
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

SECONDS: Final = 20.0
HEAL_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.1
_ELR: Final = "eligible.leader.replicas.version"
_SAFE_DOWNGRADE: Final = 2


def draw_settings(rng: random.Random) -> dict[str, str]:
    """Timeouts between the defaults and short ones."""
    settings = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": rng.choice(("2", "3")),
        "min.insync.replicas": "1",
        "num.replica.fetchers": rng.choice(("1", "2")),
        "log.flush.offset.checkpoint.interval.ms": rng.choice(("500", "5000", "60000")),
        "log.flush.scheduler.interval.ms": "500",
        "replica.high.watermark.checkpoint.interval.ms": rng.choice(("500", "5000")),
    }
    if rng.random() < 0.5:
        settings["log.flush.interval.ms"] = rng.choice(("300", "2000"))
    if rng.random() < 0.75:
        settings |= {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "400"}
        settings["replica.lag.time.max.ms"] = rng.choice(("1500", "4000"))
    if rng.random() < 0.6:
        settings |= {
            "controller.quorum.election.timeout.ms": "300",
            "controller.quorum.fetch.timeout.ms": "500",
            "controller.quorum.request.timeout.ms": "500",
            "controller.quorum.election.backoff.max.ms": "200",
        }
    return settings


class ReplicationStory(Story):
    def __init__(
        self,
        seed: int,
        *,
        seconds: float = SECONDS,
        layout: ReplicatedLayout | None = None,
        has_trouble: bool = True,
        sink: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(seed, seconds=seconds, sink=sink)
        rng = self.rng
        layout = layout or rng.choice(list(ReplicatedLayout))
        settings = draw_settings(rng)
        self.deployment = Deployment(layout, rng, is_static=False, settings=settings)
        for member in self.deployment.members:
            host = self.add_host(member.host, self._factory(member))
            runtime = self.world.runtime(member.host, f"{member.host}.format", volume=host.volume)
            self.deployment.format(member, runtime)
            self.world.loop.kill(runtime.process)
        self.by_id: dict[int, SimHost] = {m.node_id: self.hosts[m.host] for m in self.deployment.members}
        self.checker = Checker()
        self.watcher = ReplicationWatcher(self.by_id, self.checker)
        self.world.loop.after_turn = self.watcher.look
        self._has_elr = rng.random() < 0.7
        self._topics = {f"t{i}": rng.choice((1, 2, 3, 3, 3)) for i in range(3)} | {"whole": 3}
        self._stop = Stop()
        self._clients: list[Client] = []
        self.note(f"{layout.name.lower()}, ELR {self._has_elr}, {self._topics}, {settings}")
        self._happened: dict[str, int] = {}
        self._trouble: Trouble | None = None
        if has_trouble:
            self._trouble = Trouble(self.world, self.hosts, self.note, leads, self.log, **draw_trouble(rng))

    def _factory(self, member: Member) -> NodeFactory:
        return lambda runtime, data_dir: self.deployment.node(member, runtime)

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return [(broker.host, BROKER_PORT) for broker in self.deployment.brokers]

    def _router(self, name: str) -> Router:
        brokers = {member.node_id: (member.host, BROKER_PORT) for member in self.deployment.brokers}
        return Router(self.world, name, brokers)

    # -- the story

    async def prepare(self) -> None:
        router = self._router("prepare")
        types = request_types(ApiKey.UPDATE_FEATURES)
        if not self._has_elr:
            update = types.FeatureUpdateKey(
                feature=_ELR, max_version_level=0, allow_downgrade=True, upgrade_type=_SAFE_DOWNGRADE
            )
            request = types.UpdateFeaturesRequest(timeout=5_000, feature_updates=[update])
            response = await router.any().call(ApiKey.UPDATE_FEATURES, request)
            assert not response.error_code, response
        types = request_types(ApiKey.CREATE_TOPICS)
        topics = []
        for name, factor in self._topics.items():
            configs = draw_configs(self.rng, factor)
            if name == "whole":
                configs |= {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
            self.note(f"{name}: {configs}")
            topics.append(creatable(name, self.rng.choice((1, 2)), factor, configs))
        response = await router.any().call(
            ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=topics, timeout=5_000)
        )
        for answer in response.topics:
            assert answer.error_code == ErrorCode.NONE, answer
        self._partitions = [TopicPartition(t.name, i) for t in topics for i in range(t.num_partitions)]
        router.close()

    def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        partitions = self._partitions
        for index in range(2):
            self._add(
                Producing, f"idempotent{index}", partitions=partitions, acks=ACKS_ALL, is_idempotent=True
            )
        self._add(Producing, "all", partitions=partitions, acks=ACKS_ALL)
        self._add(Producing, "one", partitions=partitions, acks=1)
        self._add(Producing, "none", partitions=partitions, acks=0)
        for index in range(2):
            self._add(Consuming, f"consumer{index}", partitions=partitions)
        self._add(Committing, "group", tp=partitions[-1])
        self._add(Administering, "admin", trimmed=partitions)
        for client in self._clients:
            yield client.name, client.run()

    def _add(self, kind: Callable[..., Client], name: str, **more: Any) -> None:
        rng = self.world.rng_for(f"{name}:doings")
        self._clients.append(kind(name, self._router(name), self.checker, rng, self._stop, **more))

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
        before = {client.name: client.successes for client in self._clients}
        if self._trouble is not None:
            await self._within(self._trouble.until_up(), lambda: "a node does not start")
        await self._within(self._all_progress(before), lambda: f"{self._stuck(before)} do not progress")
        self._stop.is_set = True
        for client in clients:
            await client
        await self._within(self._at_rest(), lambda: str(restless(self.by_id, self.watcher.image)))
        self._check_at_rest()
        await self._check_committed()
        self._happened = self.checker.counters.as_dict()

    async def _within(self, work: Coroutine[Any, Any, None], failure: Callable[[], str]) -> None:
        try:
            await asyncio.wait_for(work, HEAL_SECONDS)
        except TimeoutError:
            self.checker.fail(rules.LIVENESS, f"{failure()} after {HEAL_SECONDS:.0f} s")
            raise Over from None

    def _stuck(self, before: dict[str, int]) -> list[str]:
        return [client.name for client in self._clients if client.successes <= before[client.name]]

    async def _all_progress(self, before: dict[str, int]) -> None:
        while self._stuck(before):
            await asyncio.sleep(_LOOK_SECONDS)

    async def _at_rest(self) -> None:
        while restless(self.by_id, self.watcher.image) is not None:
            await asyncio.sleep(_LOOK_SECONDS)

    def _check_at_rest(self) -> None:
        for topic in self.watcher.image.topics_by_name.values():
            for index, state in topic.partitions.items():
                tp = TopicPartition(topic.name, index)
                replicas = {n: self._resting(n, tp) for n in state.replicas}
                is_compacted = topic.name == GROUP_METADATA_TOPIC
                check_at_rest(str(tp), replicas, self.checker.fail, is_compacted=is_compacted)

    def _resting(self, node_id: int, tp: TopicPartition) -> Any:
        host = self.by_id[node_id]
        node: Any = host.node
        return resting(node, host.volume, tp)

    async def _check_committed(self) -> None:
        """Where the offsets topic lost nothing, the last acknowledged commit is there, or one that was sent
        after it."""
        (client,) = (client for client in self._clients if isinstance(client, Committing))
        image = self.watcher.image
        offsets = image.topics_by_name.get(GROUP_METADATA_TOPIC)
        if offsets is None or any(self.checker.truths[offsets.id, i].is_lossy for i in offsets.partitions):
            return
        ids = {client.tp.topic: image.topics_by_name[client.tp.topic].id}
        for _ in range(50):
            try:
                found = await client.committed(ids)
                break
            except NoAnswer:
                await asyncio.sleep(_LOOK_SECONDS)
        else:
            self.checker.fail(rules.LIVENESS, "no committed offset was answered")
            return
        client._router.close()
        if not client.acknowledged <= found <= client.sent:
            text = f"{found}, acknowledged {client.acknowledged}, sent {client.sent}"
            self.checker.fail(rules.COMMITTED_OFFSETS, text)

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
