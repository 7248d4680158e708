"""DescribeConfigs answers what Apache Kafka 4.3.1 answered for the same settings (tests/golden/configs)."""

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.core.configs import (
    ConfigEntry,
    NodeConfig,
    describe_broker,
    describe_broker_default,
    describe_topic,
)

GOLDEN = json.loads((Path(__file__).parents[3] / "golden/configs/describe_configs.json").read_text())
DYNAMIC_BROKER = {"message.max.bytes": "2000001", "log.cleaner.threads": "2"}
DYNAMIC_TOPIC = {"retention.ms": "100000", "cleanup.policy": "compact,delete"}


def entries(found: list[ConfigEntry]) -> dict[str, list[Any]]:
    return {
        e.name: [*e[:2], e.source, e.read_only, e.sensitive, e.type, [list(s) for s in e.synonyms]]
        for e in found
    }


@pytest.fixture
def node() -> NodeConfig:
    config, warnings = NodeConfig.from_sources(GOLDEN["server_properties"], {})
    assert warnings == ["Ignoring the unknown configuration my.own.key"]
    config.set_dynamic(DYNAMIC_BROKER, {name: value for name, value, *_ in GOLDEN["broker_default"]})
    return config


def test_a_topic_is_described_as_apache_does(node: NodeConfig) -> None:
    assert entries(describe_topic(node, DYNAMIC_TOPIC)) == {e[0]: e for e in GOLDEN["topic"]}


def test_the_cluster_default_is_described_as_apache_does(node: NodeConfig) -> None:
    assert entries(describe_broker_default(node)) == {e[0]: e for e in GOLDEN["broker_default"]}


def test_a_broker_is_described_as_apache_does_but_for_our_own_defaults(node: NodeConfig) -> None:
    ours = entries(describe_broker(node))
    apache = {e[0]: e for e in GOLDEN["broker"]}
    assert {name for name in {*ours, *apache} if ours.get(name) != apache.get(name)} == {
        "controller.quorum.append.linger.ms",
        "group.initial.rebalance.delay.ms",
        "offsets.topic.replication.factor",
        "replica.socket.receive.buffer.bytes",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        "transaction.two.phase.commit.enable",
    }
