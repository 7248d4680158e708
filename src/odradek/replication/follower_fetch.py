"""Records the progress of followers: a follower that fetches from an offset has all records below it.

This happens once, when the fetch arrives. It does not if the fetch is refused or the follower's log diverges.
"""

from typing import TYPE_CHECKING, NamedTuple

from odradek.core.errors import KafkaError
from odradek.core.types import NO_LEADER_EPOCH
from odradek.runtime.slices import STEP, Paced

if TYPE_CHECKING:
    from odradek.replication.fetch_sessions import PartitionFetch, PartitionKey
    from odradek.replication.manager import ReplicaManager
    from odradek.replication.partition import Partition


class FetchingReplica(NamedTuple):
    """The fetching broker, with the broker epoch that it sent."""

    broker_id: int
    broker_epoch: int


def record_progress(
    replicas: "ReplicaManager", wanted: "dict[PartitionKey, PartitionFetch]", follower: FetchingReplica
) -> Paced[None]:
    for key, fetch in list(wanted.items()):
        partition = replicas.find(*key)
        if partition is not None and _is_on_our_log(replicas, partition, fetch, follower):
            partition.record_fetch(
                follower.broker_id, fetch.fetch_offset, fetch.log_start_offset, follower.broker_epoch
            )
        yield STEP


def _is_on_our_log(
    replicas: "ReplicaManager", partition: "Partition", fetch: "PartitionFetch", follower: FetchingReplica
) -> bool:
    """Whether the follower may fetch here and its log is a prefix of the leader's."""
    diverging = None
    try:
        leader = partition.require_leader(fetch.current_leader_epoch)
        leader.require_replica(follower.broker_id, fetch.current_leader_epoch)
        replicas.require_current(follower)
        if fetch.last_fetched_epoch != NO_LEADER_EPOCH:
            diverging = partition.diverging_epoch(fetch.last_fetched_epoch, fetch.fetch_offset)
    except KafkaError:
        return False  # the read answers with the error
    log = partition.log
    return diverging is None and log.log_start_offset <= fetch.fetch_offset <= log.log_end_offset
