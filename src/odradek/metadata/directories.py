"""Which directory of a broker has a replica, and whether that directory is online (KIP-858). Pure."""

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
    directory = directory_of(partition, broker_id)
    broker = image.brokers.get(broker_id)
    return directory in _SOMEWHERE or (broker is not None and directory in broker.log_dirs)
