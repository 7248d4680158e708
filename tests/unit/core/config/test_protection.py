"""A node does not start, and does not change, where Apache Kafka would protect and it would not."""

import pytest

from odradek.core.configs import ConfigError, NodeConfig, validate_dynamic_broker_configs

BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
MAP = (
    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,IN:PLAINTEXT,OUT:SASL_SSL,QUORUM:SSL"
)


def node(settings: dict[str, str]) -> NodeConfig:
    return NodeConfig.from_sources(settings, {})[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"listeners": "SASL_SSL://h:1,CONTROLLER://h:2"},
            "listeners: SASL_SSL is not supported yet; use PLAINTEXT",
        ),
        (
            {"listeners": "ssl://h:1,CONTROLLER://h:2"},
            "listeners: SSL is not supported yet; use PLAINTEXT",
        ),
        (
            {"listeners": "PLAINTEXT://h:1,OUT://h:3,CONTROLLER://h:2"},
            "listeners: SASL_SSL is not supported yet; use PLAINTEXT (OUT in listener.security.protocol.map)",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://h:1,SSL://h:2"},
            "advertised.listeners: SSL is not supported yet; use PLAINTEXT",
        ),
        (
            {"listeners": "PLAINTEXT://h:1,QUORUM://h:2", "controller.listener.names": "QUORUM"},
            "listeners: SSL is not supported yet; use PLAINTEXT (QUORUM in listener.security.protocol.map)",
        ),
        (
            {
                "process.roles": "broker",
                "listeners": "PLAINTEXT://h:1",
                "controller.listener.names": "QUORUM",
                "controller.quorum.bootstrap.servers": "h:2",
            },
            "controller.listener.names: SSL is not supported yet; use PLAINTEXT "
            "(QUORUM in listener.security.protocol.map)",
        ),
        (
            {"inter.broker.listener.name": "OUT"},
            "inter.broker.listener.name: SASL_SSL is not supported yet; use PLAINTEXT "
            "(OUT in listener.security.protocol.map)",
        ),
        (
            {"security.inter.broker.protocol": "SSL"},
            "security.inter.broker.protocol: SSL is not supported yet; use PLAINTEXT",
        ),
        (
            {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer: "
            "authorizers are not supported yet; remove the setting to run without",
        ),
    ],
)
def test_a_start_is_refused_by_the_key_that_asks_for_protection(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        node({"listener.security.protocol.map": MAP, **settings})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "name",
    [
        "create.topic.policy.class.name",
        "alter.config.policy.class.name",
        "principal.builder.class",
        "listener.name.plaintext.principal.builder.class",
        "client.quota.callback.class",
        "sasl.server.callback.handler.class",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "listener.name.plaintext.scram-sha-512.sasl.server.callback.handler.class",
    ],
)
def test_classes_that_would_decide_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}=com.example.Mine: .* are not supported yet"):
        node({name: "com.example.Mine"})


@pytest.mark.parametrize(
    "settings",
    [
        {"listener.security.protocol.map": MAP},
        {"ssl.client.auth": "required", "ssl.keystore.location": "/k", "sasl.enabled.mechanisms": "PLAIN"},
        {"listener.name.plaintext.ssl.client.auth": "required"},
        {"authorizer.class.name": " ", "principal.builder.class": BUILDER},
        {"super.users": "User:a", "allow.everyone.if.no.acl.found": "false"},
        {"max.connections": "5", "metric.reporters": "com.example.Mine", "security.providers": "x"},
        {"sasl.login.class": "com.example.Mine", "ssl.engine.factory.class": "com.example.Mine"},
        {"early.start.listeners": "CONTROLLER", "delegation.token.secret.key": "x"},
        {"listeners": "IN://h:1,CONTROLLER://h:2", "listener.security.protocol.map": MAP}
        | {"inter.broker.listener.name": "IN"},
        {"process.roles": "controller", "listeners": "CONTROLLER://h:2"}
        | {"security.inter.broker.protocol": "SSL"},
    ],
)
def test_what_protects_nothing_in_apache_kafka_either_starts(settings: dict[str, str]) -> None:
    node(settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"listeners": "PLAINTEXT://h:1,SSL://h:3,CONTROLLER://h:2"}, "listeners: SSL is not supp"),
        (
            {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"},
            "PLAINTEXT in listener.security",
        ),
        ({"principal.builder.class": "com.example.Mine"}, "principal builders are not supported yet"),
        (
            {"listener.name.plaintext.sasl.server.callback.handler.class": "com.example.Mine"},
            "callback classes are not supported yet",
        ),
    ],
)
def test_a_change_at_run_time_is_refused_by_the_same_rule(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_dynamic_broker_configs(node({}), changes, cluster_default=False)


def test_a_change_at_run_time_that_protects_nothing_is_taken() -> None:
    changes = {"listener.name.plaintext.ssl.keystore.location": "/k", "max.connections": "5"}
    validate_dynamic_broker_configs(node({}), changes, cluster_default=False)
