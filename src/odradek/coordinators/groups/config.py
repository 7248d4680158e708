"""The settings of group shards, read from the node's configuration."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.core.configs import NodeConfig

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member may wait in its first JoinGroup. The same constant as in Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = (1 << 31) - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
    offsets_load_buffer_bytes: int = 5_242_880
    consumer_protocol: bool = True
    """Whether group.coordinator.rebalance.protocols contains `consumer`."""
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_max_size: int = (1 << 31) - 1
    consumer_session_timeout_ms: int = 45_000
    consumer_session_timeout_range_ms: tuple[int, int] = (45_000, 60_000)
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_heartbeat_interval_range_ms: tuple[int, int] = (5_000, 15_000)
    consumer_assignment_interval_ms: int = 1_000
    consumer_assignment_interval_range_ms: tuple[int, int] = (0, 15_000)
    consumer_regex_refresh_interval_ms: int = 600_000
    consumer_migration_policy: str = "bidirectional"

    @property
    def consumer_upgrades(self) -> bool:
        """Whether a classic group becomes a consumer group when a consumer member joins."""
        return self.consumer_migration_policy in ("upgrade", "bidirectional")

    @property
    def consumer_downgrades(self) -> bool:
        """Whether a consumer group becomes a classic group when only classic members are left."""
        return self.consumer_migration_policy in ("downgrade", "bidirectional")

    @classmethod
    def from_node(cls, config: "NodeConfig") -> "GroupConfig":
        return cls(
            initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
            max_size=config.int("group.max.size"),
            offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
            offsets_commit_timeout_ms=config.int("offsets.commit.timeout.ms"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
            offsets_load_buffer_bytes=config.int("offsets.load.buffer.size"),
            consumer_protocol="consumer" in config.list("group.coordinator.rebalance.protocols"),
            consumer_assignors=config.list("group.consumer.assignors"),
            consumer_max_size=config.int("group.consumer.max.size"),
            consumer_session_timeout_ms=config.int("group.consumer.session.timeout.ms"),
            consumer_session_timeout_range_ms=(
                config.int("group.consumer.min.session.timeout.ms"),
                config.int("group.consumer.max.session.timeout.ms"),
            ),
            consumer_heartbeat_interval_ms=config.int("group.consumer.heartbeat.interval.ms"),
            consumer_heartbeat_interval_range_ms=(
                config.int("group.consumer.min.heartbeat.interval.ms"),
                config.int("group.consumer.max.heartbeat.interval.ms"),
            ),
            consumer_assignment_interval_ms=config.int("group.consumer.assignment.interval.ms"),
            consumer_assignment_interval_range_ms=(
                config.int("group.consumer.min.assignment.interval.ms"),
                config.int("group.consumer.max.assignment.interval.ms"),
            ),
            consumer_regex_refresh_interval_ms=config.int("group.consumer.regex.refresh.interval.ms"),
            consumer_migration_policy=config.string("group.consumer.migration.policy").lower(),
        )
