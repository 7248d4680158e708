"""MetadataDelta: the changes of one commit. The publisher passes them to its subscribers. Pure."""

from uuid import UUID

from odradek.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionRegistration, TopicImage
from odradek.runtime.slices import FEW, Paced


class MetadataDelta:
    """The images before and after one commit, and what it changed, in the order of the records.

    It has only the final state. If the leader of a partition changed and changed back, the leader is the same
    and the leader epoch is higher, so subscribers compare epochs. A topic that was deleted and created again
    is in both lists, with two ids: deletions are applied first. A removed config is named here and is not in
    the image.
    """

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


def delta_between(previous: MetadataImage, image: MetadataImage) -> Paced[MetadataDelta]:
    """From a live image to one that a snapshot gave: what it lacks is deleted.

    The two share nothing, so that everything is compared.
    """
    delta = MetadataDelta(previous, image)
    for topic_id, topic in previous.topics_by_id.items():
        if topic_id not in image.topics_by_id:
            delta.deleted_topics.append(topic)
        yield FEW
    for topic_id, topic in image.topics_by_id.items():
        before = previous.topics_by_id.get(topic_id)
        known = {} if before is None else before.partitions
        is_changed = before is None
        for index, partition in topic.partitions.items():
            if known.get(index) != partition:
                delta.changed_partitions.append((topic, index, partition))
                is_changed = True
            yield FEW
        if is_changed:
            delta.changed_topics.append(topic_id)
    for key, values in image.configs.items():
        if previous.configs.get(key) != values:
            delta.changed_configs.append(key)
        yield FEW
    for key in previous.configs:
        if key not in image.configs:
            delta.changed_configs.append(key)
        yield FEW
    return delta
