"""What one commit changed: the unit in which the image is published. No logic."""

from uuid import UUID

from odradek.metadata.image import MetadataImage, PartitionRegistration, TopicImage


class MetadataDelta:
    """One commit: the images on both sides of it, and what it touched, in the order of the records."""

    __slots__ = (
        "brokers_changed",
        "changed_configs",
        "changed_partitions",
        "changed_topics",
        "deleted_topics",
        "features_changed",
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
        self.brokers_changed = False
        self.features_changed = False
