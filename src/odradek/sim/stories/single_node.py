"""A story with one node, several producers and groups, and the faults of the seed.

Clients work all the time. Faults hit the node, it is restarted, and everything is read back and compared with
the answers that the clients got. The story ends with a clean stop and one more restart.
"""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any
from uuid import UUID

from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.sim.checkers import logs as checkers
from odradek.sim.checkers.audit import Auditor, Flushed
from odradek.sim.checkers.history import History
from odradek.sim.checkers.platter import flushed_commits, flushed_records
from odradek.sim.stories.outcome import Outcome, Over
from odradek.sim.stories.plan import WEIGHTS, Plan, RebalanceProtocol, Settings, draw_settings
from odradek.sim.stories.story import Story, Tasks
from odradek.sim.workloads.administering import Administrator
from odradek.sim.workloads.classic_member import ClassicMember
from odradek.sim.workloads.modern_member import FIRST_VERSIONS, ModernMember
from odradek.sim.workloads.producing import Producer
from odradek.sim.world.cluster import CrashKind, NodeFactory, NodeLike, SimHost
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

SECONDS = 60.0
HOST = "node"
FLUSHED_TOPIC, PLAIN_TOPIC = "flushed", "plain"
PARTITIONS_PER_TOPIC = 2
PRODUCERS = (
    ("idempotent0", True, -1),
    ("idempotent1", True, -1),
    ("plain-all", False, -1),
    ("plain-one", False, 1),
    ("plain-none", False, 0),
)
GROUPS = {"readers": ("readers0", "readers1"), "others": ("others0", "others1")}
"""Groups and their members."""
ADMINISTRATOR = "administrator"
TURNS_BETWEEN_CHECKS = 8
PLAN = Plan(WEIGHTS, wait_seconds=5, seconds=15, down_seconds=1.5, calls=2000, patience_seconds=5, power=True)

LogsOf = Callable[[NodeLike], Iterable[checkers.LogView]]


class SingleNodeStory(Story):
    """Producers, groups and an administrator."""

    ends_at_violation = True

    def __init__(
        self,
        seed: int,
        factory: Callable[[Settings], NodeFactory],
        logs_of: LogsOf,
        *,
        seconds: float = SECONDS,
        sink: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(seed, seconds=seconds, sink=sink)
        self.plan = PLAN
        self._logs_of = logs_of
        settings = draw_settings(self.rng)
        self._host = self.add_host(HOST, factory(settings))
        self._host.before_start.append(self._before_start)
        self._host.before_crash.append(self._before_crash)
        flushed = {FLUSHED_TOPIC}
        if settings.flush_everything:
            flushed |= {PLAIN_TOPIC, GROUP_METADATA_TOPIC}
        self._history = History(frozenset(flushed))
        self.oddities = self._history.oddities
        self._partitions = [
            TopicPartition(topic, index)
            for topic in (FLUSHED_TOPIC, PLAIN_TOPIC)
            for index in range(PARTITIONS_PER_TOPIC)
        ]
        self._topic_ids: dict[str, UUID] = {}
        self._flushed: Flushed | None = None
        self._born = 0
        """The position in the history at which the node was started."""
        self._invariants = checkers.LogInvariants()
        self.world.loop.after_turn = self._after_turn

    # -- the story

    async def prepare(self) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        flush = types.CreatableTopicConfig(name="flush.messages", value="1")
        topics = [
            types.CreatableTopic(
                name=topic,
                num_partitions=PARTITIONS_PER_TOPIC,
                replication_factor=1,
                configs=[flush] if topic == FLUSHED_TOPIC else [],
            )
            for topic in (FLUSHED_TOPIC, PLAIN_TOPIC)
        ]
        admin = self.caller("admin")
        response = await admin.call(
            ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=topics, timeout=30_000), version=7
        )
        for topic in response.topics:
            if topic.error_code:
                raise Over(f"cannot create {topic.name}: {topic.error_code} {topic.error_message}")
            self._topic_ids[topic.name] = topic.topic_id
        admin.close()

    def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        world, history = self.world, self._history
        for name, idempotent, acks in PRODUCERS:
            producer = Producer(
                name,
                self.caller(name, {ApiKey.PRODUCE: 7} if idempotent else None),
                history,
                self._topic_ids,
                self._partitions,
                world.rng_for(f"{name}:doings"),
                idempotent=idempotent,
                acks=acks,
                lives=lambda: self._host.lives,
                now_ms=self._host.clock.now_ms,
                pace_seconds=0.25,
                codecs=5 if idempotent else 4,
            )
            yield name, producer.run(self.seconds)
        rng = world.rng_for(f"{ADMINISTRATOR}:doings")
        caller = self.caller(ADMINISTRATOR)
        administrator = Administrator(caller, history, self._partitions, rng, pace_seconds=1.0)
        yield ADMINISTRATOR, administrator.run(self.seconds)
        protocols = world.rng_for("protocols")
        for group, names in GROUPS.items():
            protocol = protocols.choice(list(RebalanceProtocol))
            self.note(f"group {group}: {protocol.value}")
            for index, name in enumerate(names):
                modern = protocol.is_modern(index)
                caller = self.caller(name, FIRST_VERSIONS if modern else None)
                rng = world.rng_for(f"{name}:doings")
                kind = ModernMember if modern else ClassicMember
                member = kind(
                    name,
                    group,
                    caller,
                    history,
                    self._topic_ids,
                    self._partitions,
                    rng,
                    broker_s=self._broker_s,
                )
                member.moves = protocol is RebalanceProtocol.MIXED
                yield name, member.run(self.seconds)

    async def conclude(self, clients: Tasks) -> None:
        for task in clients:
            await task
        await self._audit()
        await self._host.stop()
        await self.restart(self._host)

    def count(self, outcome: Outcome) -> None:
        history = self._history
        outcome.acknowledged_records = history.acknowledged_records
        outcome.acknowledged_commits = history.acknowledged_commits
        outcome.read_records = history.read_records

    def _broker_s(self) -> float:
        return self._host.clock.steady_ms() / 1000

    # -- evidence

    def _before_start(self) -> None:
        self._invariants.new_life()
        self._born = self._history.next_place()

    async def restart(self, host: SimHost, crash_after: tuple[int, CrashKind] | None = None) -> None:
        await super().restart(host, crash_after)
        await self._audit()

    async def _audit(self) -> None:
        world = self.world
        name = f"auditor{self._history.next_place()}"
        auditor = Auditor(
            world.runtime(name),
            self.bootstrap,
            self._history,
            self._partitions,
            tuple(GROUPS),
            self._topic_ids,
            world.rng_for(f"{name}:versions"),
        )
        self.outcome.violations += await auditor.audit(self._born, self._flushed)
        self._flushed = None

    def _before_crash(self, kind: CrashKind) -> None:
        if kind is not CrashKind.POWER:
            return
        records = flushed_records(self._host.volume, self._host.data_dir)
        flushed = Flushed(records, flushed_commits(records))
        if self._flushed is not None:
            # It crashed before the audit: what was durable at the first crash still is.
            for tp, found in self._flushed.records.items():
                flushed.records.setdefault(tp, {}).update(found)
            flushed.commits = {**self._flushed.commits, **flushed.commits}
        self._flushed = flushed
        self._history.power_lost(flushed.records)

    def _after_turn(self) -> None:
        if self.world.loop.turns % TURNS_BETWEEN_CHECKS == 0 and self._host.node is not None:
            found = self._invariants.check(self._logs_of(self._host.node))
            if found:
                raise Over(*found)
