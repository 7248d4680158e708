"""Settings without effect: which they are, and which of them a node warns of."""

import pytest

from odradek.core.configs import (
    BROKER_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    NodeConfig,
    inert_dynamic,
    inert_of,
    inert_static,
)

KEY = "listener.security.protocol.map"


def node(settings: dict[str, str]) -> NodeConfig:
    return NodeConfig.from_sources(settings, {})[0]


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"max.connections.per.ip": "5", "listener.name.plaintext.max.connections": "2"}, []),
        ({"max.connection.creation.rate": "5"}, ["max.connection.creation.rate"]),
        (
            {"ssl.keystore.location": "/k", "ssl.client.auth": "required"},
            ["ssl.client.auth", "ssl.keystore.location"],
        ),
        ({"sasl.enabled.mechanisms": "PLAIN"}, ["sasl.enabled.mechanisms"]),
        (
            {"listener.name.plaintext.ssl.client.auth": "required"},
            ["listener.name.plaintext.ssl.client.auth"],
        ),
        # It acts for the node, and not for one listener.
        (
            {"listener.name.plaintext.connections.max.idle.ms": "5"},
            ["listener.name.plaintext.connections.max.idle.ms"],
        ),
        (
            {"listener.name.plaintext.scram-sha-256.sasl.jaas.config": "x"},
            ["listener.name.plaintext.scram-sha-256.sasl.jaas.config"],
        ),
        ({"super.users": "User:a"}, ["super.users"]),
        ({"metric.reporters": "com.example.Mine"}, ["metric.reporters"]),
        (
            {"remote.log.storage.system.enable": "true", "rsm.config.x": "1"},
            ["remote.log.storage.system.enable", "rsm.config.x"],
        ),
        ({KEY: "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OUT:SASL_SSL,SSL:SSL"}, [f"{KEY} (OUT:SASL_SSL)"]),
        ({KEY: "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SASL_SSL"}, [f"{KEY} (SSL:SASL_SSL)"]),
        (
            {"group.coordinator.rebalance.protocols": "classic,consumer,share"},
            ["group.coordinator.rebalance.protocols (share)"],
        ),
    ],
)
def test_a_setting_that_asks_for_something_is_warned_of(settings: dict[str, str], warned: list[str]) -> None:
    assert inert_static(node(settings)) == (tuple(warned), ())


@pytest.mark.parametrize(
    "settings",
    [
        {"num.io.threads": "64"},
        {"listener.name.plaintext.num.network.threads": "9"},
        {"socket.send.buffer.bytes": "1"},
        {"queued.max.requests": "5"},
        {"max.connection.creation.rate": "2147483647"},
        {"ssl.enabled.protocols": "TLSv1.2, TLSv1.3"},
        {"share.coordinator.state.topic.min.isr": "1"},  # our default
        {"share.coordinator.state.topic.replication.factor": "3"},  # Apache Kafka's
    ],
)
def test_defaults_and_sizes_of_apache_kafkas_threads_are_told_only(settings: dict[str, str]) -> None:
    assert inert_static(node(settings)) == ((), tuple(settings))


def test_what_acts_and_what_nobody_knows_is_not_listed() -> None:
    settings = {"num.partitions": "3", "log.retention.hours": "5", "num.partition": "3"}
    assert inert_static(node(settings)) == ((), ())


def test_listeners_that_are_set_at_run_time_have_no_effect() -> None:
    changes = {
        "listeners": "PLAINTEXT://h:1",
        "max.connections": "5",
        "max.connection.creation.rate": "5",
        "message.max.bytes": "5",
        "num.io.threads": "9",
    }
    assert inert_dynamic(changes, node({})) == (
        ("listeners", "max.connection.creation.rate"),
        ("num.io.threads",),
    )


def test_settings_of_topics_and_of_share_and_streams_groups() -> None:
    topic = {"retention.ms": "5", "leader.replication.throttled.replicas": "*", "local.retention.ms": "-2"}
    assert inert_of(topic, TOPIC_KEYS) == (
        ("leader.replication.throttled.replicas",),
        ("local.retention.ms",),
    )
    group = {
        "consumer.session.timeout.ms": "50000",
        "share.session.timeout.ms": "50000",
        "streams.num.standby.replicas": "1",
    }
    assert inert_of(group, GROUP_KEYS).warned == ("share.session.timeout.ms", "streams.num.standby.replicas")


def test_sizes_are_keys_that_do_not_act() -> None:
    from odradek.core.config.inert import _SIZES

    assert [name for name in _SIZES if BROKER_KEYS[name].acts] == []
