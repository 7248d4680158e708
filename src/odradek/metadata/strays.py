"""Finds stray logs: logs on a broker's disk that the metadata does not assign to it. Pure."""

from uuid import UUID

from odradek.core.types import TopicPartition
from odradek.log.checkpoints import is_damaged_topic_id
from odradek.metadata.image import MetadataImage


def is_stray(image: MetadataImage, broker_id: int, tp: TopicPartition, topic_id: UUID | None) -> bool:
    """Whether the image assigns a log to other brokers only, or does not have it.

    `topic_id` comes from the log's files.
    """
    topic = image.topics_by_name.get(tp.topic)
    if topic is None:
        return True
    if topic_id is not None and topic_id != topic.id and not is_damaged_topic_id(topic_id, topic.id):
        return True
    partition = topic.partitions.get(tp.partition)
    return partition is None or broker_id not in partition.replicas
