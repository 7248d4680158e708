"""MetadataDelta: the changes of one commit. The publisher passes them to its subscribers."""

from uuid import UUID

from odradek.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionRegistration, TopicImage


class MetadataDelta:
    """The images before and after one commit, and what it changed, in the order of the records."""

    __slots__ = (
        "changed_configs",
        "changed_partitions",
        "changed_topics",
        "deleted_topics",
        "image",
        "previous",
    )

    def __init__(self, previous: MetadataImage, image: MetadataImage) -> None:
        self.previous = previous
        self.image = image
        self.changed_topics: list[UUID] = []
        self.deleted_topics: list[TopicImage] = []
        self.changed_partitions: list[tuple[TopicImage, int, PartitionRegistration]] = []
        self.changed_configs: list[tuple[int, str]] = []


def full_delta(image: MetadataImage) -> MetadataDelta:
    """The whole image as one delta."""
    delta = MetadataDelta(EMPTY_IMAGE, image)
    delta.changed_topics = list(image.topics_by_id)
    delta.changed_partitions = [
        (topic, index, partition)
        for topic in image.topics_by_id.values()
        for index, partition in topic.partitions.items()
    ]
    delta.changed_configs = list(image.configs)
    return delta
