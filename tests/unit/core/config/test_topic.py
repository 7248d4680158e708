"""A topic's values in force, and how DescribeConfigs explains them."""

from odradek.core.configs import (
    ConfigSource,
    NodeConfig,
    TopicConfig,
    describe_broker,
    describe_broker_default,
    describe_topic,
)


def node(**settings: str) -> NodeConfig:
    return NodeConfig.from_sources({k.replace("_", "."): v for k, v in settings.items()}, {})[0]


def entry(config: NodeConfig, overrides: dict[str, str], name: str) -> tuple[str | None, int, list[object]]:
    (found,) = describe_topic(config, overrides, [name])
    return found.value, found.source, [(s.name, s.value, s.source.name) for s in found.synonyms]


def test_kafkas_defaults_hold() -> None:
    config = TopicConfig.resolve(node())
    assert config.segment_bytes == 1 << 30
    assert config.segment_ms == config.retention_ms == 604_800_000
    assert config.flush_ms == config.flush_messages == (1 << 63) - 1
    assert config.cleanup_policy == ("delete",)
    assert config.deletes_old_records
    assert not config.is_compacted
    assert config.compression_type == "producer"
    assert config.compression_level is None
    assert config.message_timestamp_type == "CreateTime"


def test_broker_settings_are_the_topics_defaults() -> None:
    config = TopicConfig.resolve(node(log_segment_bytes="2000000", log_roll_hours="2", message_max_bytes="7"))
    assert config.segment_bytes == 2_000_000
    assert config.segment_ms == 7_200_000
    assert config.max_message_bytes == 7


def test_finer_units_win_over_coarser_ones() -> None:
    assert TopicConfig.resolve(node(log_retention_hours="2")).retention_ms == 7_200_000
    assert (
        TopicConfig.resolve(node(log_retention_hours="2", log_retention_minutes="3")).retention_ms == 180_000
    )
    both = node(log_retention_minutes="3", log_retention_ms="4")
    assert TopicConfig.resolve(both).retention_ms == 4
    assert TopicConfig.resolve(node(log_retention_hours="-1")).retention_ms == -1


def test_a_topics_own_settings_win() -> None:
    config = TopicConfig.resolve(
        node(log_cleanup_policy="compact"),
        {"cleanup.policy": "delete, compact", "compression.type": "zstd", "compression.zstd.level": "9"},
    )
    assert config.cleanup_policy == ("delete", "compact")
    assert config.compression_level == 9


def test_settings_that_do_not_act_do_no_harm() -> None:
    TopicConfig.resolve(node(), {"remote.storage.enable": "false", "of.a.newer.kafka": "x"})


def test_small_segments_are_possible_through_the_internal_key() -> None:
    assert TopicConfig.resolve(node(), {"internal.segment.bytes": "14"}).segment_bytes == 14


def test_dynamic_broker_settings_reach_topics() -> None:
    config = node(log_segment_bytes="2000000")
    assert TopicConfig.resolve(config).segment_bytes == 2_000_000
    config.set_dynamic({}, {"log.segment.bytes": "3000000"})
    assert TopicConfig.resolve(config).segment_bytes == 3_000_000
    assert TopicConfig.resolve(config, {}, {"log.segment.bytes": "4000000"}).segment_bytes == 4_000_000


def test_the_source_is_the_first_synonym_that_is_set() -> None:
    config = node(log_segment_bytes="2000000")
    assert entry(config, {}, "segment.bytes") == (
        "2000000",
        ConfigSource.STATIC_BROKER,
        [
            ("log.segment.bytes", "2000000", "STATIC_BROKER"),
            ("log.segment.bytes", "1073741824", "DEFAULT"),
        ],
    )
    config.set_dynamic({"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"})
    assert entry(config, {"segment.bytes": "5000000"}, "segment.bytes") == (
        "5000000",
        ConfigSource.DYNAMIC_TOPIC,
        [
            ("segment.bytes", "5000000", "DYNAMIC_TOPIC"),
            ("log.segment.bytes", "3000000", "DYNAMIC_BROKER"),
            ("log.segment.bytes", "4000000", "DYNAMIC_DEFAULT_BROKER"),
            ("log.segment.bytes", "2000000", "STATIC_BROKER"),
            ("log.segment.bytes", "1073741824", "DEFAULT"),
        ],
    )


def test_synonyms_in_coarser_units_alone_are_not_reported() -> None:
    assert entry(node(log_retention_hours="2"), {}, "retention.ms") == ("7200000", ConfigSource.DEFAULT, [])


def test_sensitive_and_unknown_broker_settings_never_show_their_value() -> None:
    config = node(ssl_keystore_password="secret", my_own_key="hidden")
    entries = {e.name: e for e in describe_broker(config)}
    assert entries["ssl.keystore.password"].value is None
    assert entries["ssl.keystore.password"].sensitive
    assert entries["ssl.keystore.password"].synonyms[0].value is None
    assert entries["my.own.key"].value is None
    assert entries["my.own.key"].source is ConfigSource.STATIC_BROKER
    assert "unstable.api.versions.enable" not in entries


def test_the_cluster_default_lists_only_what_was_set_for_all_brokers() -> None:
    config = node(message_max_bytes="5")
    config.set_dynamic({"message.max.bytes": "6"}, {"message.max.bytes": "7"})
    (found,) = describe_broker_default(config)
    assert (found.name, found.value, found.source) == (
        "message.max.bytes",
        "7",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
    )
    assert len(found.synonyms) == 1
