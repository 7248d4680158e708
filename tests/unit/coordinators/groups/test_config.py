"""The group settings of server.properties reach the coordinator."""

import pytest

from odradek.coordinators.groups.config import GroupConfig
from odradek.core.configs import ConfigError, NodeConfig


def test_every_setting_is_read() -> None:
    config, warnings = NodeConfig.from_sources(
        {
            "group.initial.rebalance.delay.ms": "11",
            "group.min.session.timeout.ms": "12",
            "group.max.session.timeout.ms": "13",
            "group.max.size": "14",
            "offset.metadata.max.bytes": "15",
            "offsets.commit.timeout.ms": "16",
            "offsets.retention.minutes": "17",
            "offsets.retention.check.interval.ms": "18",
            "offsets.load.buffer.size": "19",
            "group.consumer.assignors": "range",
            "group.consumer.max.size": "20",
            "group.consumer.session.timeout.ms": "2100",
            "group.consumer.min.session.timeout.ms": "2000",
            "group.consumer.max.session.timeout.ms": "2200",
            "group.consumer.heartbeat.interval.ms": "310",
            "group.consumer.min.heartbeat.interval.ms": "300",
            "group.consumer.max.heartbeat.interval.ms": "320",
            "group.consumer.assignment.interval.ms": "41",
            "group.consumer.min.assignment.interval.ms": "40",
            "group.consumer.max.assignment.interval.ms": "42",
            "group.consumer.regex.refresh.interval.ms": "10001",
            "group.consumer.migration.policy": "UPGRADE",
        },
        {},
    )
    assert not warnings
    assert GroupConfig.from_node(config) == GroupConfig(
        initial_rebalance_delay_ms=11,
        min_session_timeout_ms=12,
        max_session_timeout_ms=13,
        max_size=14,
        offset_metadata_max_bytes=15,
        offsets_commit_timeout_ms=16,
        offsets_retention_ms=17 * 60_000,
        offsets_retention_check_interval_ms=18,
        offsets_load_buffer_bytes=19,
        consumer_assignors=("range",),
        consumer_max_size=20,
        consumer_session_timeout_ms=2_100,
        consumer_session_timeout_range_ms=(2_000, 2_200),
        consumer_heartbeat_interval_ms=310,
        consumer_heartbeat_interval_range_ms=(300, 320),
        consumer_assignment_interval_ms=41,
        consumer_assignment_interval_range_ms=(40, 42),
        consumer_regex_refresh_interval_ms=10_001,
        consumer_migration_policy="upgrade",
    )


def test_the_defaults_are_kafkas_but_for_the_delay_of_the_first_rebalance() -> None:
    config, _ = NodeConfig.from_sources({}, {})
    assert GroupConfig.from_node(config) == GroupConfig(initial_rebalance_delay_ms=0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"group.consumer.assignors": "uniform,sticky"}, "sticky is not a supported assignor"),
        (
            {"group.consumer.session.timeout.ms": "44999"},
            "group.consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "15001"},
            "group.consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {
                "group.consumer.max.assignment.interval.ms": "5",
                "group.consumer.min.assignment.interval.ms": "6",
            },
            "group.consumer.max.assignment.interval.ms must be greater than or equal to "
            "group.consumer.min.assignment.interval.ms",
        ),
        (
            {
                "group.consumer.heartbeat.interval.ms": "45000",
                "group.consumer.max.heartbeat.interval.ms": "45000",
            },
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
    ],
)
def test_a_node_does_not_start_with_settings_that_contradict_each_other(
    settings: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        NodeConfig.from_sources(settings, {})
