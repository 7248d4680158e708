"""Settings in the metadata reach the parts that use them: at the start, and with every change."""

from typing import Any

import pytest

from odradek.broker.dynamic_configs import DynamicConfigs
from odradek.core.configs import ConfigError, NodeConfig, TopicConfig, node_defaults
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import (
    CLUSTER_DEFAULT,
    EMPTY_IMAGE,
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    MetadataImage,
    TopicImage,
)
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Paced
from odradek.sim.world.world import World
from tests.unit.coordinators.node import T_ID, U_ID, topic_image

KEY = "producer.id.expiration.ms"


class Replicas:
    def __init__(self) -> None:
        self.configured: list[list[str]] = []

    def configs_changed(self, topics: list[TopicImage]) -> Paced[None]:
        self.configured.append([topic.name for topic in topics])
        yield 1


class AddressLimits:
    def __init__(self) -> None:
        self.configured = 0
        self.failure: ConfigError | None = None

    async def configure(self, config: NodeConfig) -> None:
        self.configured += 1
        if self.failure is not None:
            raise self.failure


class Stage:
    """The settings of a node with two topics."""

    def __init__(self) -> None:
        self.config = NodeConfig(node_defaults("/data", port=0))
        self.metadata = MetadataPublisher()
        self.replicas, self.limits = Replicas(), AddressLimits()
        self.seen: list[int] = []
        self.scope = Scope()
        replicas: Any = self.replicas
        limits: Any = self.limits
        self.configs = DynamicConfigs(
            self.config,
            self.metadata,
            replicas,
            limits,
            self.scope,
            [lambda config: self.seen.append(config.int(KEY))],
        )
        topics = [topic_image("t", T_ID, 1), topic_image("u", U_ID, 1)]
        self.publish(EMPTY_IMAGE._replace(offset=0, topics_by_name={topic.name: topic for topic in topics}))

    def publish(self, image: MetadataImage, *changed: tuple[int, str]) -> None:
        delta = MetadataDelta(self.metadata.image, image._replace(offset=self.metadata.image.offset + 1))
        delta.changed_configs += changed
        self.metadata.publish(delta)

    def set(self, resource: tuple[int, str], **values: str) -> None:
        image = self.metadata.image
        given = {key.replace("_", "."): value for key, value in values.items()}
        self.publish(image._replace(configs={**image.configs, resource: given}), resource)


def test_a_broker_goes_by_what_was_set_before_it_started() -> None:
    async def main() -> None:
        stage = Stage()
        stage.set((RESOURCE_BROKER, CLUSTER_DEFAULT), producer_id_expiration_ms="7000")
        stage.set((RESOURCE_BROKER, "1"), producer_id_expiration_ms="8000")
        stage.set((RESOURCE_BROKER, "2"), producer_id_expiration_ms="9000")
        await stage.configs.load()
        assert stage.seen == [8000]
        assert stage.limits.configured == 1

    World(1).run(main())


def test_a_change_for_brokers_concerns_every_topic_and_one_of_a_topic_only_that() -> None:
    async def main() -> None:
        stage = Stage()
        stage.configs.subscribe()
        stage.replicas.configured.clear()
        stage.set((RESOURCE_TOPIC, "u"), retention_ms="5")
        assert (stage.replicas.configured, stage.seen) == ([["u"]], [])
        assert TopicConfig.resolve(stage.config, stage.metadata.image.topic_config("u")).retention_ms == 5
        stage.set((RESOURCE_BROKER, CLUSTER_DEFAULT), producer_id_expiration_ms="7000")
        assert stage.replicas.configured[1:] == [["t", "u"]]
        assert stage.seen == [7000]
        await stage.scope.join()
        assert stage.limits.configured == 1

    World(1).run(main())


def test_limits_that_cannot_be_taken_leave_those_in_force(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        stage = Stage()
        stage.configs.subscribe()
        stage.limits.failure = ConfigError("max.connections.per.ip.overrides", "h:1", "unknown host")
        stage.set((RESOURCE_BROKER, CLUSTER_DEFAULT), producer_id_expiration_ms="7000")
        await stage.scope.join()

    World(1).run(main())
    assert "keeping the previous ones" in caplog.text


def test_a_setting_of_the_metadata_that_promises_protection_refuses_the_start() -> None:
    async def main() -> None:
        stage = Stage()
        stage.set((RESOURCE_BROKER, CLUSTER_DEFAULT), principal_builder_class="Own")
        with pytest.raises(ConfigError, match="set in the metadata log"):
            await stage.configs.load()

    World(1).run(main())
