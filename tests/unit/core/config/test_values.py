"""Values are refused with the words Apache Kafka 4.3.1 was seen to use."""

import pytest

from odradek.core.configs import BROKER_KEYS, TOPIC_KEYS, ConfigError, NodeConfig, validate_topic_config
from odradek.core.configs import validate_topic_configs as validate_all

REPLICAS = (
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("retention.ms", "x", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        (
            "retention.ms",
            "9223372036854775808",
            "Invalid value 9223372036854775808 for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "1_0",
            "Invalid value 1_0 for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "segment.bytes",
            "1",
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "cleanup.policy",
            "foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "compression.type",
            "bad",
            "Invalid value bad for configuration compression.type: String must be one of: "
            "uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "abc",
            "Invalid value abc for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.zstd.level",
            "23",
            "Invalid value 23 for configuration compression.zstd.level: Value must be no more than 22",
        ),
        (
            "leader.replication.throttled.replicas",
            "x",
            "Invalid value [x] for configuration leader.replication.throttled.replicas: "
            f"leader.replication.throttled.replicas {REPLICAS}",
        ),
        ("nope", "1", "Unknown topic config name: nope"),
    ],
)
def test_bad_topic_values_are_refused_in_kafkas_words(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_topic_config(name, value)
    assert str(caught.value) == message
    assert caught.value.key == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", " 100 "),
        ("retention.ms", "+5"),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "delete,delete"),
        ("preallocate", "TRUE"),
        ("min.cleanable.dirty.ratio", "0.5d"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1, 1:2"),
        ("leader.replication.throttled.replicas", ""),
    ],
)
def test_what_kafka_takes_is_taken(name: str, value: str) -> None:
    validate_topic_config(name, value)


def test_settings_of_a_topic_must_agree_with_each_other() -> None:
    node, _ = NodeConfig.from_sources({}, {})
    with pytest.raises(ConfigError) as caught:
        validate_all({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, node)
    assert str(caught.value) == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )


def test_tiered_storage_must_be_there_to_be_used() -> None:
    node, _ = NodeConfig.from_sources({}, {})
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled in the broker"):
        validate_all({"remote.storage.enable": "true"}, node)
    validate_all({"remote.storage.enable": "false", "local.retention.ms": "5"}, node)


def test_every_default_passes_its_own_check() -> None:
    for key in [*BROKER_KEYS.values(), *TOPIC_KEYS.values()]:
        if key.default is not None:
            key.parse(key.default)
