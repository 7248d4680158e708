"""Which directory of a broker has a replica, and whether that directory is online (KIP-858). Pure."""

from collections.abc import Collection
from uuid import UUID

from odradek.metadata.image import DIR_MIGRATING, DIR_UNASSIGNED, MetadataImage, PartitionRegistration

_SOMEWHERE = (DIR_MIGRATING, DIR_UNASSIGNED)


def directory_of(partition: PartitionRegistration, broker_id: int) -> UUID:
    """The directory of a replica; DIR_UNASSIGNED if it was not reported."""
    if not partition.directories:
        return DIR_UNASSIGNED
    return partition.directories[partition.replicas.index(broker_id)]


def is_online(image: MetadataImage, partition: PartitionRegistration, broker_id: int) -> bool:
    """Whether a replica's directory is online, by the reports of its broker."""
    broker = image.brokers.get(broker_id)
    return works(() if broker is None else broker.log_dirs, directory_of(partition, broker_id))


def works(log_dirs: Collection[UUID], directory: UUID) -> bool:
    """Whether a directory is one of a broker's, or one that it has not chosen yet."""
    return directory in _SOMEWHERE or directory in log_dirs
