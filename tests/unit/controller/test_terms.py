"""Controllers that come and go at random: nothing that was answered is lost, and all nodes agree."""

import asyncio
import random
from typing import Any

import pytest

from odradek.core.errors import KafkaError
from odradek.metadata.digest import image_digest
from odradek.sim.world.world import World
from tests.unit.controller.quorum_node import QuorumCluster, QuorumNode
from tests.unit.metadata.scripted_quorum import ScriptedReplica

SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "request.timeout.ms": "5000",
    "broker.session.timeout.ms": "3600000",
}


class Story:
    """Elections, cuts, clients and snapshots from one seed."""

    def __init__(self, cluster: QuorumCluster, rng: random.Random) -> None:
        self.cluster = cluster
        self.quorum = cluster.quorum
        self.rng = rng
        self.answered: list[str] = []
        self.digests: dict[int, set[str]] = {}
        self.counts = {"deposed": 0, "snapshot": 0, "truncated": 0}
        self.clients: list[asyncio.Task[None]] = []

    async def play(self) -> None:
        await self.cluster.start()
        first = await self.cluster.lead(1)
        await self.cluster.committing(first.add_broker())
        for step in range(120):
            self.rng.choice((self.create, self.create, self.commit, self.commit, self.cut, self.elect))(step)
            await asyncio.sleep(self.rng.choice((0, 0, 0.001, 0.2)))
            self.look()
        self.heal()
        self.elect(120)
        for _ in range(200):
            self.quorum.commit()
            await asyncio.sleep(0.05)
        await self.cluster.settle()
        for client in self.clients:
            await client
        self.look()

    def look(self) -> None:
        for node in self.cluster.nodes.values():
            image = node.image
            self.digests.setdefault(image.offset, set()).add(image_digest(image))

    def create(self, step: int) -> None:
        node = self.rng.choice(list(self.cluster.nodes.values()))
        self.clients.append(asyncio.ensure_future(self._create(node, f"t{step}")))

    async def _create(self, node: QuorumNode, name: str) -> None:
        channel: Any = self.rng.choice((node.channel, node.quorum))
        try:
            if await node.create_topic(name, self.rng.randrange(1, 4), channel=channel) == 0:
                self.answered.append(name)
        except KafkaError:
            pass

    def commit(self, step: int) -> None:
        if len({self.quorum.replicas[n].leader_id for n in self.quorum.connected}) == 1:
            self.quorum.commit()

    def cut(self, step: int) -> None:
        """Leave one node out; what was out before comes back and hears who leads."""
        self.heal()
        self.commit(step)
        self.quorum.connected.remove(self.rng.choice((1, 2, 3)))
        if self.leader().node_id not in self.quorum.connected:
            self.elect(step)

    def heal(self) -> None:
        leader = self.leader()
        for n, replica in self.quorum.replicas.items():
            if n not in self.quorum.connected:
                if replica.epoch < leader.epoch:
                    self.counts["deposed"] += replica.is_leader
                    replica.hear(leader.epoch, leader.node_id)
                self.counts["truncated"] += replica.log_end_offset > leader.high_watermark
                self.catch_up(replica, leader)
        self.quorum.connected = [1, 2, 3]

    def catch_up(self, replica: ScriptedReplica, leader: ScriptedReplica) -> None:
        newest = leader.snapshots.newest
        if newest is not None and newest.end_offset > replica.high_watermark and self.rng.random() < 0.7:
            replica.install(newest, leader.snapshots.read(newest))
            self.counts["snapshot"] += 1

    def leader(self) -> ScriptedReplica:
        replicas = self.quorum.replicas
        return max((r for r in replicas.values() if r.is_leader), key=lambda r: r.epoch)

    def elect(self, step: int) -> None:
        """One whose log is as good as any of those who may vote."""
        replicas = [self.quorum.replicas[n] for n in self.quorum.connected]
        best = max((r.log.latest_epoch, r.log_end_offset) for r in replicas)
        fit = [r.node_id for r in replicas if (r.log.latest_epoch, r.log_end_offset) == best]
        self.quorum.elect(self.rng.choice(fit))


def play(seed: int) -> dict[str, int]:
    """Run a story, check what must hold, and give what happened in it."""
    world = World(seed)
    counts: dict[str, int] = {}

    async def main() -> None:
        cluster = QuorumCluster(world, SETTINGS)
        story = Story(cluster, world.rng_for("story"))
        await story.play()
        assert {offset for offset, found in story.digests.items() if len(found) > 1} == set()
        for node in cluster.nodes.values():
            assert set(story.answered) <= node.image.topics_by_name.keys()
            assert node.image.offset == cluster.quorum.leader.high_watermark - 1
        assert sum(node.quorum.is_active for node in cluster.nodes.values()) == 1
        counts.update(story.counts, answered=len(story.answered))
        await cluster.stop()

    world.run(main())
    return counts


@pytest.mark.parametrize("seed", range(2, 14))
def test_nothing_answered_is_lost_and_all_nodes_agree(seed: int) -> None:
    assert play(seed)["answered"]


def test_leaders_are_deposed_and_what_they_appended_is_truncated_and_replaced_by_snapshots() -> None:
    happened = play(0)
    assert all(happened.values()), happened
