"""A node's configuration: sources, defaults, listeners, rules between keys, dynamic changes."""

import pytest

from odradek.core.configs import (
    ConfigError,
    Listener,
    NodeConfig,
    nearest,
    validate_dynamic_broker_configs,
)


def node(**settings: str) -> NodeConfig:
    config, warnings = NodeConfig.from_sources(
        {name.replace("_", "."): value for name, value in settings.items()}, {}
    )
    assert not warnings
    return config


def test_a_node_without_a_file_is_broker_and_controller() -> None:
    config = node()
    assert config.node_id == 1
    assert config.process_roles == ("broker", "controller")
    assert config.broker_listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT"),)
    assert config.controller_listeners == (Listener("CONTROLLER", "127.0.0.1", 0, "PLAINTEXT"),)
    assert config.advertised_listeners == config.broker_listeners
    assert config.log_dirs == ("./odradek-data",)
    assert config.num_partitions == 1
    assert config.auto_create_topics_enable is True
    assert config.max_request_size == 104857600


def test_overrides_win_over_the_file() -> None:
    config, _ = NodeConfig.from_sources({"num.partitions": "3"}, {"num.partitions": "5"})
    assert config.num_partitions == 5
    assert config.raw["num.partitions"] == "5"


def test_an_unknown_key_in_a_file_is_a_warning_with_the_nearest_name() -> None:
    _, warnings = NodeConfig.from_sources({"num.partition": "3"}, {})
    assert warnings == ["Ignoring the unknown configuration num.partition; did you mean num.partitions?"]


def test_an_unknown_key_on_the_command_line_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"Unknown configuration log.retention.hour; did you mean log.retention.hours\?"
    ):
        NodeConfig.from_sources({}, {"log.retention.hour": "1"})


def test_names_far_from_every_key_get_no_suggestion() -> None:
    assert nearest("zzzzqqq") is None
    assert nearest("log_retention_hour") == "log.retention.hours"


def test_keys_of_listeners_and_plugins_are_known() -> None:
    _, warnings = NodeConfig.from_sources(
        {"listener.name.plaintext.max.connections": "5", "rsm.config.x": "1"}, {}
    )
    assert warnings == []


def test_node_id_may_come_from_broker_id_and_must_agree_with_it() -> None:
    assert node(broker_id="5").node_id == 5
    with pytest.raises(ConfigError, match=r"You must set `node.id` to the same value as `broker.id`"):
        node(broker_id="5", node_id="6")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_partitions": "0"}, "Value must be at least 1"),
        ({"process_roles": "x"}, "String must be one of: broker, controller"),
        ({"process_roles": ""}, "must not be empty. Valid values include: [broker, controller]"),
        ({"listeners": "foo"}, "Error creating broker listeners from '[foo]': Unable to parse foo"),
        (
            {"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2,CONTROLLER://h:3"},
            "Each listener must have a different name",
        ),
        ({"listeners": "PLAINTEXT://h:1,CONTROLLER://h:1"}, "Each listener must have a different port"),
        (
            {"listeners": "XX://h:1,CONTROLLER://h:2"},
            "No security protocol defined for listener XX",
        ),
        ({"listeners": "PLAINTEXT://h:1"}, "controller.listener.names must contain at least one value"),
        ({"process_roles": "broker"}, "controller.listener.names must not contain a value appearing"),
        ({"process_roles": "controller"}, "The listeners config must only contain KRaft controller"),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://h:1"},
            "cannot use the nonroutable meta-address 0.0.0.0",
        ),
        ({"log_roll_ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log_retention_hours": "0"}, "log.retention.ms must be unlimited (-1) or"),
        ({"log_dirs": ""}, "must not be empty"),
        ({"queued_max_request_bytes": "5"}, "queued.max.request.bytes must be larger or equal"),
        ({"replica_fetch_wait_max_ms": "500000"}, "replica.socket.timeout.ms should always be at least"),
        ({"log_cleaner_dedupe_buffer_size": "1"}, "must be at least 1MB per cleaner thread"),
        ({"log_cleaner_threads": "0"}, "Log cleaner threads should be at least 1"),
        ({"max_connections_per_ip": "0"}, "can be set to zero only if max.connections.per.ip.overrides"),
        ({"offsets_topic_compression_codec": "9"}, "Unknown compression type id: 9"),
        ({"inter_broker_listener_name": "FOO"}, "not found in listener.security.protocol.map"),
        (
            {"inter_broker_listener_name": "PLAINTEXT", "security_inter_broker_protocol": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol",
        ),
        ({"controller_quorum_voters": "x"}, "Each entry should be in the form `{id}@{host}:{port}`"),
        ({"controller_quorum_bootstrap_servers": "x"}, 'Each entry should be in the form "{host}:{port}"'),
        ({"listener_security_protocol_map": "CONTROLLER:FOO"}, "Invalid security protocol `FOO` defined"),
        ({"fetch_max_bytes": "1"}, "Value must be at least 1024"),
    ],
)
def test_impossible_nodes_are_refused_in_kafkas_words(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node(**settings)
    assert message in str(caught.value)


def test_a_wildcard_listener_needs_and_may_have_an_advertised_address() -> None:
    config = node(
        listeners="PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
        advertised_listeners="PLAINTEXT://kafka.example:9092",
    )
    assert [str(listener) for listener in config.advertised_listeners] == ["PLAINTEXT://kafka.example:9092"]
    assert [str(listener) for listener in config.broker_listeners] == ["PLAINTEXT://0.0.0.0:9092"]


def test_ipv6_hosts_keep_their_brackets_in_text() -> None:
    config = node(listeners="PLAINTEXT://[::1]:9092,CONTROLLER://[::1]:0")
    assert config.broker_listeners[0].host == "::1"
    assert str(config.broker_listeners[0]) == "PLAINTEXT://[::1]:9092"


def test_a_quorum_of_one_needs_one_replica_of_internal_topics() -> None:
    alone = node()
    assert alone.int("offsets.topic.replication.factor") == 1
    assert alone.int("transaction.state.log.min.isr") == 1
    many = node(controller_quorum_voters="1@a:1,2@b:1,3@c:1")
    assert many.int("offsets.topic.replication.factor") == 3
    assert many.int("group.initial.rebalance.delay.ms") == 0
    assert many.bool("transaction.two.phase.commit.enable") is True


def test_an_explicit_value_wins_over_our_own_default() -> None:
    config = node(group_initial_rebalance_delay_ms="3000")
    assert config.int("group.initial.rebalance.delay.ms") == 3000


def test_dynamic_values_win_and_are_forgotten_when_removed() -> None:
    config = node(message_max_bytes="2000000")
    changed = config.set_dynamic(
        {"message.max.bytes": "3"}, {"message.max.bytes": "4", "num.io.threads": "9"}
    )
    assert changed == ["message.max.bytes", "num.io.threads"]
    assert config.int("message.max.bytes") == 3
    assert config.set_dynamic({}, {"message.max.bytes": "4"}) == ["message.max.bytes", "num.io.threads"]
    assert config.int("message.max.bytes") == 4
    config.set_dynamic({}, {})
    assert config.int("message.max.bytes") == 2000000


def test_dynamic_changes_are_refused_where_kafka_refuses_them() -> None:
    config = node()
    validate_dynamic_broker_configs(config, {"message.max.bytes": "5"}, cluster_default=True)
    with pytest.raises(ConfigError, match="Cannot update these configs dynamically"):
        validate_dynamic_broker_configs(config, {"num.partitions": "5"}, cluster_default=False)
    with pytest.raises(ConfigError, match="at default cluster level, broker id must be specified"):
        validate_dynamic_broker_configs(config, {"listeners": "PLAINTEXT://h:1"}, cluster_default=True)
    with pytest.raises(ConfigError, match="only per-listener using the listener prefix"):
        validate_dynamic_broker_configs(config, {"ssl.keystore.type": "JKS"}, cluster_default=False)
    with pytest.raises(ConfigError, match=r"log.retention.ms must be unlimited \(-1\) or"):
        validate_dynamic_broker_configs(config, {"log.retention.ms": "0"}, cluster_default=True)
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        validate_dynamic_broker_configs(config, {"message.max.bytes": "x"}, cluster_default=False)


def test_cleaner_threads_are_at_most_halved_or_doubled_while_the_node_runs() -> None:
    config = node(log_cleaner_threads="4")
    for threads in ("2", "4", "8"):
        validate_dynamic_broker_configs(config, {"log.cleaner.threads": threads}, cluster_default=True)
    with pytest.raises(ConfigError, match="reduced to less than half the current value 4"):
        validate_dynamic_broker_configs(config, {"log.cleaner.threads": "1"}, cluster_default=True)
    with pytest.raises(ConfigError, match="increased to more than double the current value 4"):
        validate_dynamic_broker_configs(config, {"log.cleaner.threads": "9"}, cluster_default=False)
