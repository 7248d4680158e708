"""A snapshot laid over a running broker: partitions and settings follow what it has and what it lacks."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from odradek.broker.coordinator_roles import CoordinatorRoles
from odradek.broker.directory_assigner import DirectoryAssigner
from odradek.broker.dynamic_configs import DynamicConfigs
from odradek.broker.metadata_applier import MetadataApplier
from odradek.broker.no_effect import NoEffect
from odradek.core.configs import NodeConfig, node_defaults
from odradek.core.metrics import Metrics
from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.log.manager import LogManager
from odradek.metadata.delta import delta_between
from odradek.metadata.image import EMPTY_IMAGE, PartitionRegistration, TopicImage
from odradek.metadata.publisher import MetadataPublisher
from odradek.replication.manager import ReplicaManager
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Paced, Slices, at_once
from odradek.sim.world.volume import Volume
from tests.unit.log.support import VolumeRuntime, config
from tests.unit.replication.support import Surroundings

LED = PartitionRegistration(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=0, partition_epoch=0)
OLD, NEW = UUID(int=6001), UUID(int=6002)
KEY = "producer.id.expiration.ms"


class Groups:
    """What the group coordinator hears."""

    def __init__(self) -> None:
        self.changed: list[tuple[set[str], bool]] = []
        self.deleted: list[Mapping[str, UUID]] = []
        self.roles: list[str] = []

    def on_topics_changed(self, names: set[str], *, has_new: bool) -> Paced[None]:
        self.changed.append((names, has_new))
        yield 1

    def on_topics_deleted(self, topics: Mapping[str, UUID]) -> None:
        self.deleted.append(topics)

    def on_elected(self, index: int, log: Any) -> None:
        self.roles.append(f"elected {index}")

    def on_resigned(self, index: int) -> None:
        self.roles.append(f"resigned {index}")


class AddressLimits:
    async def configure(self, config: NodeConfig) -> None:
        pass


class Node:
    """The subscribers of a broker's metadata, on real logs."""

    def __init__(self) -> None:
        self.config = NodeConfig(node_defaults("/data", port=0))
        self.metadata = MetadataPublisher()
        self.logs = LogManager(VolumeRuntime(Volume()), ["/a"])
        self.logs.open()
        self.logs.load(lambda topic: config())
        self.replicas = ReplicaManager(
            1, self.logs, Metrics(), lambda topic: config(), Surroundings().context
        )
        self.groups = Groups()
        self.scope = Scope()
        self.seen: list[int] = []
        groups: Any = self.groups
        transactions: Any = None
        limits: Any = AddressLimits()
        self.metadata.subscribe(NoEffect(self.config).on_delta)
        DynamicConfigs(
            self.config,
            self.metadata,
            self.replicas,
            limits,
            self.scope,
            [lambda node_config: self.seen.append(node_config.int(KEY))],
        ).subscribe()
        roles = CoordinatorRoles(groups, transactions)
        assigner = DirectoryAssigner(1, self.logs)
        MetadataApplier(self.replicas, self.logs, assigner, roles, groups, Slices()).subscribe(self.metadata)

    async def lay_over(self, **changes: Any) -> None:
        image = EMPTY_IMAGE._replace(offset=self.metadata.image.offset + 1, epoch=1, **changes)
        self.metadata.publish(at_once(delta_between(self.metadata.image, image)))
        await self.metadata.drain()
        assert self.metadata.applied_offset == image.offset

    async def close(self) -> None:
        await self.scope.join()
        await self.logs.close()


def topics(*rows: tuple[str, UUID, PartitionRegistration]) -> dict[str, Any]:
    images = [TopicImage(name, topic_id, {0: partition}) for name, topic_id, partition in rows]
    return {"topics_by_name": {t.name: t for t in images}, "topics_by_id": {t.id: t for t in images}}


def run(main: Any) -> None:
    async def around() -> None:
        node = Node()
        await main(node)
        await node.close()

    asyncio.run(around())


def test_a_topic_that_is_gone_takes_its_log_with_it_and_groups_hear_of_it() -> None:
    async def main(node: Node) -> None:
        await node.lay_over(**topics(("t", OLD, LED), ("u", NEW, LED)))
        await node.lay_over(**topics(("u", NEW, LED)))
        assert list(node.replicas.partitions) == [TopicPartition("u", 0)]
        assert TopicPartition("t", 0) not in node.logs.logs
        assert node.groups.changed[-1] == ({"t"}, False)
        assert node.groups.deleted == [{"t": OLD}]

    run(main)


def test_a_topic_made_again_under_its_name_begins_with_an_empty_log() -> None:
    async def main(node: Node) -> None:
        await node.lay_over(**topics(("t", OLD, LED)))
        before = node.replicas.partition(TopicPartition("t", 0))
        await node.lay_over(**topics(("t", NEW, LED)))
        after = node.replicas.partition(TopicPartition("t", 0))
        assert after is not before
        assert (after.topic_id, node.logs.logs[TopicPartition("t", 0)].topic_id) == (NEW, NEW)
        assert node.replicas.find(OLD, 0) is None
        assert not before.is_leader
        assert node.groups.deleted == [{"t": OLD}]
        assert node.groups.changed[-1] == ({"t"}, True)

    run(main)


def test_a_coordinator_whose_leadership_went_and_came_back_loads_again() -> None:
    async def main(node: Node) -> None:
        await node.lay_over(**topics((GROUP_METADATA_TOPIC, OLD, LED)))
        back = LED._replace(leader_epoch=2, partition_epoch=2)
        await node.lay_over(**topics((GROUP_METADATA_TOPIC, OLD, back)))
        assert node.groups.roles == ["elected 0", "resigned 0", "elected 0"]

    run(main)


def test_a_change_of_the_isr_alone_is_no_new_role() -> None:
    async def main(node: Node) -> None:
        await node.lay_over(**topics((GROUP_METADATA_TOPIC, OLD, LED)))
        await node.lay_over(**topics((GROUP_METADATA_TOPIC, OLD, LED._replace(isr=(1,), partition_epoch=1))))
        assert node.groups.roles == ["elected 0"]
        leader = node.replicas.partition(TopicPartition(GROUP_METADATA_TOPIC, 0)).leader
        assert leader is not None
        assert leader.isr.members == (1,)

    run(main)


def test_a_broker_that_is_no_replica_any_more_stops_leading_and_has_no_log() -> None:
    async def main(node: Node) -> None:
        await node.lay_over(**topics((GROUP_METADATA_TOPIC, OLD, LED)))
        elsewhere = PartitionRegistration((2, 3), (2, 3), leader=2, leader_epoch=1, partition_epoch=4)
        await node.lay_over(**topics((GROUP_METADATA_TOPIC, OLD, elsewhere)))
        assert node.groups.roles == ["elected 0", "resigned 0"]
        tp = TopicPartition(GROUP_METADATA_TOPIC, 0)
        assert tp not in node.replicas.partitions and node.replicas.logs.get(tp) is None

    run(main)


def test_a_setting_that_the_snapshot_lacks_is_the_default_again() -> None:
    async def main(node: Node) -> None:
        default = node.config.int(KEY)
        await node.lay_over(configs={(4, ""): {KEY: "7000"}})
        await node.lay_over()
        assert node.seen == [7000, default]

    run(main)


def test_what_is_kept_without_effect_is_told_when_it_is_new_and_not_when_it_goes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(node: Node) -> None:
        await node.lay_over(kept={("acl", OLD): object(), ("opaque", b"x"): object()})
        assert "1 ACLs, 1 records of unknown types" in caplog.text
        caplog.clear()
        await node.lay_over()
        assert "Kept in the metadata log" not in caplog.text
        assert "Error applying" not in caplog.text

    with caplog.at_level(logging.INFO):
        run(main)
