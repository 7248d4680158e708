"""Which logs on a broker's disk the metadata does not give to it. Pure."""

from uuid import UUID

from odradek.core.types import TopicPartition
from odradek.log.checkpoints import is_damaged_topic_id
from odradek.metadata.image import MetadataImage


def is_stray(image: MetadataImage, broker_id: int, tp: TopicPartition, topic_id: UUID | None) -> bool:
    """Whether the image gives a log to other brokers, or does not know it.

    `topic_id` is that of the log's files.
    """
    topic = image.topics_by_name.get(tp.topic)
    if topic is None:
        return True
    if topic_id is not None and topic_id != topic.id and not is_damaged_topic_id(topic_id, topic.id):
        return True
    partition = topic.partitions.get(tp.partition)
    return partition is None or broker_id not in partition.replicas
