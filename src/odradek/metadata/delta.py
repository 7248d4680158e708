"""What one commit changed: the unit in which the image is published. No logic."""

from uuid import UUID

from odradek.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionRegistration, TopicImage


class MetadataDelta:
    """One commit: the images on both sides of it, and what it touched, in the order of the records."""

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
    """Everything that is there, as if it had come at once."""
    delta = MetadataDelta(EMPTY_IMAGE, image)
    delta.changed_topics = list(image.topics_by_id)
    delta.changed_partitions = [
        (topic, index, partition)
        for topic in image.topics_by_id.values()
        for index, partition in topic.partitions.items()
    ]
    delta.changed_configs = list(image.configs)
    return delta


def delta_between(previous: MetadataImage, image: MetadataImage) -> MetadataDelta:
    """What is different in another image, whatever lay between them: what it lacks is deleted."""
    delta = MetadataDelta(previous, image)
    for topic_id, topic in image.topics_by_id.items():
        old = previous.topics_by_id.get(topic_id)
        partitions = {} if old is None else old.partitions
        changed = [i for i, partition in topic.partitions.items() if partitions.get(i) != partition]
        if old is None or changed:
            delta.changed_topics.append(topic_id)
            delta.changed_partitions += [(topic, i, topic.partitions[i]) for i in changed]
    delta.deleted_topics = [t for i, t in previous.topics_by_id.items() if i not in image.topics_by_id]
    keys = dict.fromkeys((*previous.configs, *image.configs))
    delta.changed_configs = [key for key in keys if previous.config(*key) != image.config(*key)]
    return delta
