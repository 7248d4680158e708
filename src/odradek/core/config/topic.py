"""The configuration of one topic: its own settings first, then the broker's, then defaults. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.core.config.keys import TIME_FAMILIES, TOPIC_KEYS
from odradek.core.config.node import NodeConfig
from odradek.core.config.values import ConfigError, Value, value_to_text

_NO_OVERRIDES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One topic's effective configuration. Rebuilt whenever the topic's or the broker's settings change."""

    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    flush_messages: int
    flush_ms: int
    preallocate: bool
    retention_ms: int
    retention_bytes: int
    cleanup_policy: tuple[str, ...]
    delete_retention_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    file_delete_delay_ms: int
    max_message_bytes: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    message_timestamp_type: str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    min_insync_replicas: int
    unclean_leader_election_enable: bool

    @classmethod
    def resolve(
        cls,
        node: NodeConfig,
        topic_overrides: Mapping[str, str] = _NO_OVERRIDES,
        dynamic_broker: Mapping[str, str] = _NO_OVERRIDES,
    ) -> "TopicConfig":
        """The current values for a topic. `dynamic_broker` overrides the settings that the node has."""
        base = node.derived.get("topic")
        if base is None:
            base = {field: topic_value(name, node, _NO_OVERRIDES) for field, name in _FIELDS.items()}
            node.derived["topic"] = base
        assert isinstance(base, dict)
        values = dict(base)
        if dynamic_broker:
            for field, name in _FIELDS.items():
                values[field] = topic_value(name, node, topic_overrides, dynamic_broker)
        else:
            for name, text in topic_overrides.items():
                field = name.replace(".", "_")
                if field in values:
                    values[field] = TOPIC_KEYS[name].parse(text)
        internal_segment_bytes = values.pop("internal_segment_bytes")
        if internal_segment_bytes is not None:
            values["segment_bytes"] = internal_segment_bytes
        return cls(**values)

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes_old_records(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def compression_level(self) -> int | None:
        """The level for the topic's codec; None if the codec has no levels or the producer decides."""
        if self.compression_type == "gzip":
            return self.compression_gzip_level
        if self.compression_type == "lz4":
            return self.compression_lz4_level
        return self.compression_zstd_level if self.compression_type == "zstd" else None


_FIELDS = {field: field.replace("_", ".") for field in (*TopicConfig.__slots__, "internal_segment_bytes")}


def topic_value(
    name: str,
    node: NodeConfig,
    topic_overrides: Mapping[str, str],
    dynamic_broker: Mapping[str, str] = _NO_OVERRIDES,
) -> Value:
    """The current value of one topic key."""
    key = TOPIC_KEYS[name]
    if name in topic_overrides:
        return key.parse(topic_overrides[name])
    if not key.synonyms:
        return None if key.default is None else key.parse(key.default)
    for synonym, scale in TIME_FAMILIES.get(key.synonyms[0], ((key.synonyms[0], 1),)):
        if synonym in dynamic_broker:
            value = key.parse(dynamic_broker[synonym])
        else:
            value = node.value(synonym)
        if value is None:
            continue
        if scale > 1:
            assert isinstance(value, int)
            return value * scale if value >= 0 else -1
        return value
    return None if key.default is None else key.parse(key.default)


def validate_topic_config(name: str, value: str) -> None:
    """Raise ConfigError for an unknown name, a wrong type or a value out of range, as Kafka does."""
    key = TOPIC_KEYS.get(name)
    if key is None:
        raise ConfigError(name, value, "unknown", f"Unknown topic config name: {name}")
    key.parse(value)


def validate_topic_configs(configs: Mapping[str, str], node: NodeConfig) -> None:
    """Raise ConfigError if a setting of a topic is wrong by itself or together with the others."""
    for name in sorted(configs):
        validate_topic_config(name, configs[name])
    if topic_value("remote.storage.enable", node, configs) and not node.bool(
        "remote.log.storage.system.enable"
    ):
        reason = (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
        raise ConfigError("remote.storage.enable", "true", reason, reason)
    low = topic_value("min.compaction.lag.ms", node, configs)
    high = topic_value("max.compaction.lag.ms", node, configs)
    assert isinstance(low, int)
    assert isinstance(high, int)
    if low > high:
        reason = (
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
        raise ConfigError("min.compaction.lag.ms", value_to_text(low), reason, reason)
