"""The metadata log's own configuration, out of the node's. Pure."""

from odradek.core.configs import NodeConfig, TopicConfig


def metadata_log_config(config: NodeConfig) -> TopicConfig:
    """Retention of the metadata log follows its snapshots, never the age or size of its segments alone."""
    return TopicConfig.resolve(
        config,
        {
            "cleanup.policy": "delete",
            "segment.bytes": config.string("metadata.log.segment.bytes"),
            "segment.ms": config.string("metadata.log.segment.ms"),
            "retention.bytes": "-1",
            "retention.ms": "-1",
        },
    )
