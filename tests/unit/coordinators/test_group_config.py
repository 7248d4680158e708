"""The group settings of server.properties reach the coordinator."""

from odradek.coordinators.groups.config import GroupConfig
from odradek.core.configs import NodeConfig


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
    )


def test_the_defaults_are_kafkas_but_for_the_delay_of_the_first_rebalance() -> None:
    config, _ = NodeConfig.from_sources({}, {})
    assert GroupConfig.from_node(config) == GroupConfig(initial_rebalance_delay_ms=0)
