"""The number of partitions of the internal topics. broker/topics.py creates them."""

from odradek.core.configs import NodeConfig
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.metadata.image import MetadataImage


def partition_count(config: NodeConfig, image: MetadataImage, internal_topic: str) -> int:
    """How many partitions an internal topic has, or will have when it is created."""
    topic = image.topics_by_name.get(internal_topic)
    return configured_partitions(config, internal_topic) if topic is None else len(topic.partitions)


def configured_partitions(config: NodeConfig, internal_topic: str) -> int:
    """How many partitions it is created with."""
    if internal_topic == GROUP_METADATA_TOPIC:
        return config.int("offsets.topic.num.partitions")
    assert internal_topic == TRANSACTION_STATE_TOPIC
    return config.int("transaction.state.log.num.partitions")
