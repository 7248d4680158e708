"""Replicas of partitions: who leads and who is in sync, by Metadata; whether their files are equal."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from odradek.client.blocking import BlockingClient
from odradek.core.errors import KafkaError
from odradek.core.types import METADATA_TOPIC
from odradek.log.names import parse_partition_dir
from odradek.log.verifying.comparing import Replica, compare
from odradek.runtime.real import RealDisk
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.support.quorum_tables import until

MIN_ISR = {"min.insync.replicas": "2"}


class PartitionState(NamedTuple):
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def create_replicated(client: BlockingClient, topic: str, partitions: int) -> None:
    """Three replicas, of which two must be in sync. It has leaders when this returns."""
    client.call(client.admin.create_topics, {topic: partitions}, replication_factor=3, configs=MIN_ISR)
    until(lambda: all(state.leader >= 0 for state in states_of(client, topic).values()))


def states_of(client: BlockingClient, topic: str) -> dict[int, PartitionState]:
    """By partition, as a broker that answers knows them."""
    types = request_types(ApiKey.METADATA)
    request = types.MetadataRequest(topics=[types.MetadataRequestTopic(name=topic)])
    response = client.send(ApiKey.METADATA, request)
    return {
        p.partition_index: PartitionState(p.leader_id, tuple(p.replica_nodes), tuple(p.isr_nodes))
        for p in response.topics[0].partitions
    }


def until_in_sync(client: BlockingClient, *topics: str, without: Sequence[int] = ()) -> None:
    """Every replica, unless it is on one of these nodes, is in sync."""
    seen: dict[str, dict[int, PartitionState]] = {}

    def are_in_sync() -> bool:
        for topic in topics:
            try:
                seen[topic] = states_of(client, topic)
            except KafkaError:
                return False
            if not all(set(s.isr) == set(s.replicas) - set(without) for s in seen[topic].values()):
                return False
        return True

    until(are_in_sync, what=lambda: f"not in sync: {seen}")


def differing(folders: Mapping[int, Sequence[Path]]) -> list[str]:
    """Where two replicas of a partition do not have the same batches. `folders`: log directories by node.

    The nodes may run, if nobody writes.
    """
    replicas: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for node_id, paths in folders.items():
        for path in (inner for folder in paths for inner in folder.iterdir()):
            parsed = parse_partition_dir(path.name)
            if parsed is not None and parsed[0].topic != METADATA_TOPIC and not parsed[1]:
                replicas[path.name].append((node_id, str(path)))
    assert any(len(places) > 1 for places in replicas.values()), "nothing is replicated"
    disk = RealDisk()
    return [
        f"{name}: nodes {a} and {b}: {difference.what} from {difference.first_offset}"
        for name, places in sorted(replicas.items())
        for (a, path_a), (b, path_b) in combinations(places, 2)
        for difference in compare(*(Replica(disk, path, lambda _: None) for path in (path_a, path_b)))
    ]
