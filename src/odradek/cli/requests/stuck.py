"""Why read_committed readers are stuck: the transactions that hold last stable offsets, and who waits."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.cli.requests.cluster_access import LATEST, READ_COMMITTED, ClusterAccess, TopicInfo
from odradek.cli.requests.group_admin import committed_offsets
from odradek.cli.requests.txn_admin import ActiveProducer, Described, active_producers, is_hanging, owners
from odradek.core.types import TopicPartition


class Held(NamedTuple):
    """A partition whose last stable offset is held, by whom, and the groups that have not read it all."""

    tp: TopicPartition
    last_stable_offset: int
    end: int
    producer: ActiveProducer
    owner: Described | None
    groups: list[str]

    @property
    def is_hanging(self) -> bool:
        return is_hanging(self.producer, self.owner)

    def open_since_ms(self) -> int | None:
        """The coordinator knows when it began; of a hanging one only the last write is known."""
        if self.owner is not None and self.owner.start_ms is not None and not self.is_hanging:
            return self.owner.start_ms
        return self.producer.last_timestamp_ms

    def next_command(self) -> str:
        if self.owner is not None and not self.is_hanging:
            return f"odradek txn abort {self.owner.transactional_id}"
        topic, partition = self.tp
        return f"odradek txn abort -t {topic} -p {partition} --start-offset {self.producer.start_offset}"


def find_held(
    cluster: ClusterAccess, topics: Sequence[TopicInfo], partitions: Sequence[TopicPartition]
) -> list[Held]:
    """Partitions with records beyond the last stable offset, and the transaction that begins there."""
    ends = cluster.list_offsets(topics, partitions, LATEST)
    stable = cluster.list_offsets(topics, partitions, LATEST, READ_COMMITTED)
    blocked = [tp for tp in partitions if (stable[tp] or 0) < (ends[tp] or 0)]
    if not blocked:
        return []
    open_ = [p for p in active_producers(cluster, topics, blocked) if p.start_offset is not None]
    holders = {}
    for tp in blocked:
        mine = [p for p in open_ if p.tp == tp]
        if mine:
            holders[tp] = min(mine, key=lambda p: p.start_offset or 0)
    known = owners(cluster, (p.producer_id for p in holders.values()))
    groups = waiting_groups(cluster, {tp: ends[tp] or 0 for tp in holders})
    return [
        Held(tp, p.start_offset or 0, ends[tp] or 0, p, known.get(p.producer_id), groups[tp])
        for tp, p in holders.items()
    ]


def waiting_groups(
    cluster: ClusterAccess, ends: dict[TopicPartition, int]
) -> dict[TopicPartition, list[str]]:
    """The groups that have committed offsets before these ends."""
    waiting: dict[TopicPartition, list[str]] = {tp: [] for tp in ends}
    for group in cluster.group_names():
        for tp, offset in committed_offsets(cluster, group).items():
            if tp in ends and offset < ends[tp]:
                waiting[tp].append(group)
    return waiting
