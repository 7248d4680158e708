"""What a node says of settings, features and records without effect, at its start and while it runs."""

import re
from pathlib import Path

import pytest

from odradek.core.configs import ConfigError
from odradek.core.errors import ErrorCode
from odradek.metadata.bootstrap import bootstrap_features
from odradek.metadata.image import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from odradek.metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
)
from odradek.testing.broker import Broker
from tests.support.raw import Connection

INCREMENTAL_ALTER_CONFIGS, UPDATE_FEATURES = 44, 57
UNSUPPORTED = "(all such keys: odradek cluster info --unsupported)"


LINE = re.compile(r".* (WARNING|INFO) (.*) \(odradek\.broker\.no_effect\)")


def said(broker: Broker, since: int = 0) -> list[tuple[str, str]]:
    found = [LINE.fullmatch(line) for line in broker.log_tail(since)]
    return [(line[1], line[2]) for line in found if line]


def formatted_with(records: list[MetadataRecord], monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories that are formatted from now on begin with these records too, as others' may hold them."""
    monkeypatch.setattr(
        "odradek.metadata.formatting.bootstrap_features", lambda: [*bootstrap_features(), *records]
    )


def config(kind: int, resource: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def alter(broker: Broker, kind: int, resource: str, name: str, value: str) -> tuple[int, str | None]:
    change = {"name": name, "config_operation": 0, "value": value}
    asked = {"resource_type": kind, "resource_name": resource, "configs": [change]}
    with Connection(broker.bootstrap_servers) as connection:
        answer = connection.call(INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [asked], "validate_only": False})
    return answer.responses[0].error_code, answer.responses[0].error_message


def test_one_line_lists_the_settings_without_effect() -> None:
    with Broker(
        {"max.connection.creation.rate": 5, "ssl.client.auth": "required", "num.io.threads": 9}
    ) as broker:
        assert said(broker) == [
            (
                "WARNING",
                f"Settings without effect: max.connection.creation.rate, ssl.client.auth {UNSUPPORTED}",
            ),
            (
                "INFO",
                "Settings without effect (defaults, or sizes of Apache Kafka's threads and buffers): "
                "num.io.threads",
            ),
        ]


def test_a_node_with_settings_that_act_says_nothing() -> None:
    with Broker({"num.partitions": 3, "transaction.state.log.replication.factor": 1}) as broker:
        assert said(broker) == []


def test_settings_in_the_metadata_log_are_in_the_same_line(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [config(RESOURCE_TOPIC, f"t{i}", "leader.replication.throttled.replicas", "*") for i in range(5)]
    formatted_with(
        [
            config(RESOURCE_BROKER, "1", "remote.fetch.max.wait.ms", "5"),
            config(RESOURCE_BROKER, "2", "remote.fetch.max.wait.ms", "5"),
            config(RESOURCE_BROKER, "", "max.connection.creation.rate", "5"),
            config(RESOURCE_GROUP, "g", "share.session.timeout.ms", "50000"),
            *topics,
        ],
        monkeypatch,
    )
    with Broker({"ssl.client.auth": "required"}) as broker:
        assert said(broker) == [
            (
                "WARNING",
                "Settings without effect: ssl.client.auth, remote.fetch.max.wait.ms (broker 1), "
                "max.connection.creation.rate (all brokers), share.session.timeout.ms (group g), "
                "leader.replication.throttled.replicas "
                f"(topic t0, topic t1, topic t2, 2 more) {UNSUPPORTED}",
            )
        ]


def test_quotas_and_features_of_an_opened_directory_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entity = EntityData(entity_type="user", entity_name="a")
    quota = ClientQuotaRecord(entity=[entity], key="producer_byte_rate", value=1024.0, remove=False)
    features = [FeatureLevelRecord(name=f"{kind}.version", feature_level=1) for kind in ("share", "streams")]
    formatted_with([quota, *features], monkeypatch)
    expected = [
        ("WARNING", "share.version=1 is finalized, but share groups are not supported yet"),
        ("WARNING", "streams.version=1 is finalized, but streams groups are not supported yet"),
        ("WARNING", "Stored in the metadata log but not enforced: 1 client quotas"),
    ]
    with Broker(data_dir=str(tmp_path)) as broker:
        assert said(broker) == expected
        broker.stop()
        mark = broker.log_mark()
        broker.start()
        assert said(broker, mark) == expected
        assert broker.look(lambda node: node.metadata.image.features["share.version"]) == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("principal.builder.class", "com.example.Mine", "principal builders are not supported yet"),
        ("listeners", "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "listeners: SSL is not supported yet"),
    ],
)
def test_protection_in_the_metadata_log_refuses_the_start(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatted_with([config(RESOURCE_BROKER, "1", name, value)], monkeypatch)
    with pytest.raises(ConfigError, match=rf"{message}.* \(set in the metadata log\)"), Broker():
        pass


def test_a_setting_without_effect_is_told_when_it_is_made() -> None:
    with Broker() as broker:
        assert alter(broker, RESOURCE_BROKER, "1", "max.connection.creation.rate", "5") == (0, None)
        assert said(broker) == [
            ("WARNING", f"Settings without effect: max.connection.creation.rate (broker 1) {UNSUPPORTED}")
        ]
        mark = broker.log_mark()
        assert alter(broker, RESOURCE_BROKER, "1", "message.max.bytes", "5") == (0, None)
        assert alter(broker, RESOURCE_BROKER, "1", "max.connection.creation.rate", "5") == (0, None)
        assert said(broker, mark) == []
        assert alter(broker, RESOURCE_GROUP, "g", "share.session.timeout.ms", "50000") == (0, None)
        assert said(broker, mark) == [
            ("WARNING", f"Settings without effect: share.session.timeout.ms (group g) {UNSUPPORTED}")
        ]


def test_protection_is_refused_when_it_is_asked_for() -> None:
    with Broker() as broker:
        code, message = alter(broker, RESOURCE_BROKER, "1", "principal.builder.class", "com.example.Mine")
        assert (code, message) == (
            ErrorCode.INVALID_REQUEST,
            "principal.builder.class=com.example.Mine: principal builders are not supported yet; "
            "remove the setting to run without",
        )
        assert broker.look(lambda node: node.config.dynamic_broker) == {}


def test_listeners_set_at_run_time_change_nothing() -> None:
    with Broker() as broker:
        listeners = "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:0"
        assert alter(broker, RESOURCE_BROKER, "1", "listeners", listeners) == (0, None)
        assert said(broker) == [("WARNING", f"Settings without effect: listeners (broker 1) {UNSUPPORTED}")]
        assert broker.look(lambda node: f"127.0.0.1:{node.address[1]}") == broker.bootstrap_servers


def test_a_feature_that_is_raised_and_not_served_is_told() -> None:
    update = {"feature": "share.version", "max_version_level": 1, "upgrade_type": 1}
    with Broker() as broker, Connection(broker.bootstrap_servers) as connection:
        request = {"timeout": 10_000, "feature_updates": [update], "validate_only": False}
        assert connection.call(UPDATE_FEATURES, 2, request).error_code == 0
        assert said(broker) == [
            ("WARNING", "share.version=1 is finalized, but share groups are not supported yet")
        ]
