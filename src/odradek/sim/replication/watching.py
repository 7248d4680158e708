"""Looks at all replicas of a simulated cluster after each turn of the loop. The checker hears what is new.

It only reads: partitions and leaders in the memory of the nodes, and batches from the content of their disks,
past the simulated system calls.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from odradek.broker.node import Node
from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.log.parts.bounds import Bounds
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionRegistration, TopicImage
from odradek.records.header import iter_batches
from odradek.replication.isr import IsrState
from odradek.replication.leader import PartitionLeader
from odradek.replication.partition import Partition
from odradek.sim.replication.checker import Checker
from odradek.sim.replication.replica_log import Batch
from odradek.sim.replication.truth import LeaderView, PartitionTruth
from odradek.sim.world.cluster import CrashKind, NodeLike, SimHost
from odradek.sim.world.volume import Volume

_FLUSHED: Final = "1"
_NOBODY: Final = -1


class _Seen:
    """What was last seen of a replica in this life of its node. Nothing here keeps the node alive."""

    __slots__ = (
        "bounds",
        "end",
        "high_watermark",
        "isr",
        "led_epoch",
        "position",
        "segment",
        "start",
        "truncations",
        "truth",
        "view",
    )

    def __init__(self, bounds: Bounds, truth: PartitionTruth) -> None:
        self.truth = truth
        self.bounds = bounds
        self.end = self.high_watermark = self.start = self.truncations = -1
        self.segment = self.position = 0
        self.led_epoch = _NOBODY
        self.isr: IsrState | None = None
        self.view: LeaderView | None = None


_Change: TypeAlias = tuple[int, Volume, Partition, _Seen]


class ReplicationWatcher:
    """`look` after every turn; `crashes` before the node of a host is gone."""

    def __init__(self, hosts: Mapping[int, SimHost], checker: Checker) -> None:
        self._hosts = hosts
        self._checker = checker
        self._seen: dict[int, tuple[int, dict[TopicPartition, _Seen]]] = {}
        self._rejected: dict[int, int] = {}
        self.image: MetadataImage = EMPTY_IMAGE
        """The newest that any node has shown."""
        for node_id, host in hosts.items():
            host.before_crash.append(lambda kind, n=node_id: self.crashes(n, kind))  # type: ignore[misc]

    def look(self) -> None:
        changed: list[_Change] = []
        for host in self._hosts.values():
            node = host.node
            if node is not None:
                assert isinstance(node, Node)
                if node.metadata.image.offset > self.image.offset:
                    self._look_at_image(node.metadata.image)
        for node_id, host in self._hosts.items():
            if host.node is not None:
                changed += self._changed(node_id, host)
                self._count_rejected(node_id, host.node)
        self._tell(changed)

    def crashes(self, node_id: int, kind: CrashKind) -> None:
        """Before a node is gone: what it answered in this turn is known to the checker."""
        host = self._hosts[node_id]
        if host.node is not None:
            assert isinstance(host.node, Node)
            if host.node.metadata.image.offset > self.image.offset:
                self._look_at_image(host.node.metadata.image)
            self._tell(self._changed(node_id, host))
            self._rejected[node_id] = 0
            leads = any(t.leader == node_id for t in self._registrations())
            self._checker.counters.leaders_killed += leads
        if kind is CrashKind.POWER:
            self._checker.power_lost(node_id)

    def _count_rejected(self, node_id: int, node: NodeLike) -> None:
        assert isinstance(node, Node)
        known, found = self._rejected.get(node_id, 0), node.metrics.isr.failed_updates
        if found != known:
            self._rejected[node_id] = found
            self._checker.counters.rejected += max(0, found - known)

    def _registrations(self) -> Iterable[PartitionRegistration]:
        return (p for topic in self.image.topics_by_id.values() for p in topic.partitions.values())

    # --- metadata -------------------------------------------------------------------------------------

    def _look_at_image(self, image: MetadataImage) -> None:
        before, self.image = self.image, image
        if image.brokers is not before.brokers:
            for broker in image.brokers.values():
                self._checker.broker_epoch(broker.id, broker.epoch)
        if image.topics_by_id is before.topics_by_id:
            return
        for topic_id, topic in before.topics_by_id.items():
            if topic_id not in image.topics_by_id:
                for index in topic.partitions:
                    self._checker.remove((topic_id, index))
        for topic_id, topic in image.topics_by_id.items():
            known = before.topics_by_id.get(topic_id)
            if known is not topic:
                self._look_at_topic(image, topic, known)

    def _look_at_topic(self, image: MetadataImage, topic: TopicImage, before: TopicImage | None) -> None:
        config = image.topic_config(topic.name)
        allow_unclean = config.get("unclean.leader.election.enable") == "true"
        for index, registration in topic.partitions.items():
            if before is not None and before.partitions.get(index) == registration:
                continue  # an image of another node has the same in other objects
            truth = self._checker.truths.get((topic.id, index))
            if truth is None:
                truth = self._checker.add(
                    (topic.id, index),
                    f"{topic.name}-{index}",
                    is_compacted="compact" in config.get("cleanup.policy", ""),
                    is_flushed=config.get("flush.messages") == _FLUSHED,
                )
            truth.decided(registration, allow_unclean=allow_unclean)

    # --- replicas -------------------------------------------------------------------------------------

    def _changed(self, node_id: int, host: SimHost) -> list[_Change]:
        node = host.node
        assert isinstance(node, Node)
        life, seen = self._seen.get(node_id, (0, {}))
        if life != host.lives:
            seen = {}
            self._seen[node_id] = host.lives, seen
        changed = []
        for tp, partition in node.replicas.partitions.items():
            known = seen.get(tp)
            if known is None or known.bounds is not partition.log.bounds:
                assert partition.topic_id is not None
                truth = self._checker.truths.get((partition.topic_id, tp.partition))
                if truth is None:
                    continue
                known = seen[tp] = _Seen(partition.log.bounds, truth)
            bounds, leader = known.bounds, partition.leader
            if (
                bounds.log_end_offset != known.end
                or bounds.high_watermark != known.high_watermark
                or (known.led_epoch != _NOBODY if leader is None else leader.isr is not known.isr)
                or bounds.log_start_offset != known.start
                or bounds.truncations != known.truncations
            ):
                changed.append((node_id, host.volume, partition, known))
        return changed

    def _tell(self, changed: list[_Change]) -> None:
        """The logs first: what a high watermark has passed is on other replicas by then."""
        for node_id, volume, partition, seen in changed:
            self._tell_log(node_id, volume, partition.log, seen)
        for node_id, _, partition, seen in changed:
            self._tell_leader(node_id, partition.leader, seen)

    def _tell_log(self, node_id: int, volume: Volume, log: Log, seen: _Seen) -> None:
        bounds, replica = seen.bounds, seen.truth.replica(node_id)
        replica.start = bounds.log_start_offset
        if bounds.truncations != seen.truncations:
            is_new = seen.truncations < 0
            self._checker.counters.truncated += not is_new
            seen.truncations = bounds.truncations
            seen.segment, seen.position = -1, 0
            batches = _read(volume, log, seen)
            known = replica.returned if is_new else replica.replace
            known(batches, bounds.log_start_offset, bounds.log_end_offset)
            seen.truth.check()
        elif bounds.log_end_offset != seen.end:
            replica.append(_read(volume, log, seen))
            replica.end = bounds.log_end_offset
        seen.start, seen.end = bounds.log_start_offset, bounds.log_end_offset

    def _tell_leader(self, node_id: int, leader: PartitionLeader | None, seen: _Seen) -> None:
        """A high watermark that moved in the turn in which its leader was deposed is still the leader's."""
        before = seen.view
        seen.high_watermark = seen.bounds.high_watermark
        epoch = _NOBODY if leader is None else leader.epoch
        if epoch != seen.led_epoch:
            if before is not None:
                last = before._replace(high_watermark=seen.high_watermark)
                seen.truth.led(node_id, last, before)
            before = None
        seen.led_epoch = epoch
        seen.isr = None if leader is None else leader.isr
        seen.view = None
        if leader is not None:
            seen.view = LeaderView(
                leader.epoch,
                seen.high_watermark,
                tuple(leader.isr.members),
                tuple(leader.isr.maximal),
                leader.min_isr,
            )
            seen.truth.led(node_id, seen.view, before)


def _read(volume: Volume, log: Log, seen: _Seen) -> list[Batch]:
    """The batches behind those that were read before."""
    found = []
    for base, data in _new_bytes(volume, log, seen.segment, seen.position):
        seen.segment, seen.position = base, (seen.position if base == seen.segment else 0) + len(data)
        for meta in iter_batches(data):
            found.append(
                Batch(
                    meta.base_offset,
                    meta.last_offset + 1,
                    meta.crc,
                    meta.partition_leader_epoch,
                    meta.producer_id,
                    meta.producer_epoch,
                    meta.base_sequence,
                )
            )
    return found


def _new_bytes(volume: Volume, log: Log, segment_base: int, position: int) -> Iterable[tuple[int, bytes]]:
    """(base offset, bytes) of the segments of a log, from a position in one of them on."""
    for segment in log.segments.all():
        if segment.base_offset < segment_base:
            continue
        begin = position if segment.base_offset == segment_base else 0
        file = volume.find_file(segment.file.path)
        yield segment.base_offset, file.data.read(begin, segment.size - begin)
