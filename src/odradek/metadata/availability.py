"""Which brokers of a partition a client can reach on its listener. Pure."""

from collections.abc import Iterable

from odradek.core.types import NO_LEADER
from odradek.metadata.directories import is_online
from odradek.metadata.image import MetadataImage, PartitionRegistration


def reachable_brokers(image: MetadataImage, broker_ids: Iterable[int], listener: str) -> list[int]:
    """The brokers that are registered, not fenced, and have the listener."""
    return [n for n in broker_ids if _has_listener(image, n, listener) and not image.brokers[n].fenced]


def offline_replicas(image: MetadataImage, partition: PartitionRegistration, listener: str) -> list[int]:
    """The replicas whose broker cannot be reached or whose directory failed."""
    online = reachable_brokers(image, partition.replicas, listener)
    return [n for n in partition.replicas if n not in online or not is_online(image, partition, n)]


def leader_to_name(image: MetadataImage, partition: PartitionRegistration, listener: str) -> int:
    """The leader, if it has the client's listener. It may be fenced: then the controller is about to elect
    another one."""
    return partition.leader if _has_listener(image, partition.leader, listener) else NO_LEADER


def endpoint_of(image: MetadataImage, broker_id: int, listener: str) -> tuple[str, int, str | None] | None:
    """Host, port and rack of a broker on a listener."""
    broker = image.brokers.get(broker_id)
    if broker is None or listener not in broker.endpoints:
        return None
    endpoint = broker.endpoints[listener]
    return endpoint.host, endpoint.port, broker.rack


def _has_listener(image: MetadataImage, broker_id: int, listener: str) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and listener in broker.endpoints
