"""ReplicaManager: all partitions of this node. It applies the deltas of the metadata log to them.

The partitions take their roles: followers are fetched, leaders are not. The result says which ones were
elected or resigned, for the coordinators. partition.py handles the records of a partition.
"""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError
from odradek.core.metrics import Metrics
from odradek.core.types import TopicPartition
from odradek.log.manager import LogManager
from odradek.metadata.directories import directory_of
from odradek.metadata.image import RESERVED_DIRS
from odradek.replication.context import LeaderContext
from odradek.replication.fetching.manager import FetcherManager
from odradek.replication.partition import Partition
from odradek.runtime.reply import Reply
from odradek.runtime.slices import FEW, STEP, Paced, Slices

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig
    from odradek.metadata.delta import MetadataDelta
    from odradek.metadata.image import PartitionRegistration, TopicImage
    from odradek.replication.follower_fetch import FetchingReplica

_log = logging.getLogger(__name__)

LATEST_OFFSET = -1
OPENED = 2_500
DELETED = 1_000
"""Opening or renaming a log takes time of the disk, not of Python, so a slice has few of them."""
CONFIGURED = 100


class RoleChanges(NamedTuple):
    """The role changes of one delta, in the order of the metadata log."""

    elected: list[Partition]
    resigned: list[TopicPartition]


class Deleted(NamedTuple):
    """Records below `offset` are deleted here. They are on all replicas when the low watermark is there."""

    partition: Partition
    offset: int
    low_watermark: int


def _lasting(changes: RoleChanges) -> RoleChanges:
    """Remove elected partitions that have gone offline since, with another partition of their directory."""
    return changes._replace(elected=[partition for partition in changes.elected if partition.is_leading])


class _Unopened(NamedTuple):
    """A partition of this node that could not be opened, and why."""

    topic: "TopicImage"
    registration: "PartitionRegistration"
    reason: str


class ReplicaManager:
    """The node's partitions by name."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        metrics: Metrics,
        topic_config: "Callable[[str], TopicConfig]",
        context: LeaderContext,
        slices: Slices | None = None,
        fetchers: FetcherManager | None = None,
    ) -> None:
        self._slices = slices or Slices()
        self.fetchers = fetchers or FetcherManager()
        self.broker_id = broker_id
        self.logs = logs
        self.partitions: dict[TopicPartition, Partition] = {}
        self._by_topic: dict[tuple[str | UUID, int], Partition] = {}
        self._names: dict[UUID, str] = {}
        self.offline: dict[TopicPartition, str] = {}
        self._unopened: dict[TopicPartition, _Unopened] = {}
        self._metrics = metrics
        self._topic_config = topic_config
        self._context = context
        self.is_stopping = False  # no more logs are opened: the next start does it

    # --- lookups --------------------------------------------------------------------------------------

    def partition(self, tp: TopicPartition) -> Partition:
        """The replica, leader or follower. Raises KAFKA_STORAGE_ERROR if its directory failed."""
        partition = self.partitions.get(tp)
        if partition is not None:
            return partition
        if tp in self.offline:
            raise StorageError(f"{tp} is offline: {self.offline[tp]}")
        if tp in self._unopened:
            raise ExhaustedError(f"{tp} is not open yet: {self._unopened[tp].reason}")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def find(self, topic: str | UUID, index: int) -> Partition | None:
        """The replica by topic name or id, or None. For the hot path."""
        return self._by_topic.get((topic, index))

    def partition_of(self, topic: str | UUID, index: int) -> Partition:
        """The replica by topic name or id. Raises the errors of Produce and Fetch."""
        partition = self._by_topic.get((topic, index))
        if partition is not None:
            return partition
        name: str | None
        if isinstance(topic, UUID):
            name = self._names.get(topic)
            if name is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            name = topic
        return self.partition(TopicPartition(name, index))

    def require_current(self, follower: "FetchingReplica") -> None:
        """Refuse a fetch of an earlier incarnation of a broker."""
        if self._context.is_outdated(follower.broker_id, follower.broker_epoch):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def take_offline(
        self, directory: str, reason: str, resigned: Callable[[TopicPartition], None]
    ) -> Paced[None]:
        """A log directory failed: its partitions answer KAFKA_STORAGE_ERROR until the node is restarted.

        Their logs already refuse everything. This answers the waiting requests.
        """
        for tp, partition in list(self.partitions.items()):
            if partition.log.directory != directory:
                yield FEW
            elif self.partitions.get(tp) is partition:
                self.offline[tp] = reason
                self._forget(partition)
                partition.stop(ErrorCode.KAFKA_STORAGE_ERROR)
                resigned(tp)
                yield STEP
        self.fetchers.wake()

    # --- metadata -------------------------------------------------------------------------------------

    def apply_delta(self, delta: "MetadataDelta") -> Paced[RoleChanges]:
        """Apply a delta. Deletions first, so that a topic created again with the same name finds no old
        files.

        An error of one partition is logged, and the others still take their roles.
        """
        changes = RoleChanges([], [])
        for topic in delta.deleted_topics:
            yield from self._delete(topic, changes)
        for topic, index, registration in delta.changed_partitions:
            tp = TopicPartition(topic.name, index)
            is_open = tp in self.partitions
            try:
                if self.broker_id not in registration.replicas:
                    if not self._is_here(tp):
                        continue
                    self._delete_partition(tp, changes, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    yield DELETED
                elif is_open or not self.is_stopping:
                    self._apply(topic, index, registration, changes)
            except Exception:
                _log.exception("Error applying the metadata of %s-%d", topic.name, index)
            yield 2 * STEP if is_open else OPENED
        self.fetchers.wake()
        return _lasting(changes)

    def _is_here(self, tp: TopicPartition) -> bool:
        return tp in self.partitions or tp in self.offline or tp in self._unopened

    def waiting(self) -> "list[tuple[TopicImage, int, PartitionRegistration]]":
        """The partitions whose logs could not be opened yet, from the metadata."""
        return [(topic, tp.partition, row) for tp, (topic, row, _) in self._unopened.items()]

    def open_waiting(self) -> Paced[RoleChanges]:
        """Retry to open the logs that failed because descriptors or memory ran out."""
        changes = RoleChanges([], [])
        for tp in list(self._unopened):
            unopened = self._unopened.get(tp)  # with its current metadata
            if unopened is not None and not self.is_stopping:
                self._apply(unopened.topic, tp.partition, unopened.registration, changes)
                yield OPENED
        self.fetchers.wake()
        return _lasting(changes)

    def configs_changed(self, topics: "Iterable[TopicImage]") -> Paced[None]:
        """Apply the new configuration to the logs of these topics."""
        if not self.partitions:
            return  # the node is starting: logs open with it
        for topic in topics:
            config = self._topic_config(topic.name)
            yield CONFIGURED
            for index in topic.partitions:
                partition = self._by_topic.get((topic.name, index))
                if partition is not None:
                    partition.configure(config)
                yield STEP

    def _remember(self, partition: Partition, topic_id: UUID) -> None:
        topic, index = tp = partition.topic_partition
        assert tp not in self.partitions and tp not in self.offline and tp not in self._unopened
        self.partitions[tp] = partition
        self._by_topic[topic, index] = self._by_topic[topic_id, index] = partition

    def _forget(self, partition: Partition) -> None:
        topic, index = tp = partition.topic_partition
        assert self.partitions[tp] is self._by_topic[topic, index] is partition
        self.fetchers.remove(tp)
        del self.partitions[tp], self._by_topic[topic, index]
        if partition.topic_id is not None:
            self._by_topic.pop((partition.topic_id, index), None)

    def _apply(
        self, topic: "TopicImage", index: int, registration: "PartitionRegistration", changes: RoleChanges
    ) -> None:
        tp = TopicPartition(topic.name, index)
        self._names[topic.id] = topic.name
        partition = self.partitions.get(tp)
        if partition is None:
            if tp in self.offline:
                return
            directory_id = directory_of(registration, self.broker_id)
            try:
                opened = self.logs.get_or_create(
                    tp,
                    topic.id,
                    self._topic_config(topic.name),
                    directory_id=None if directory_id in RESERVED_DIRS else directory_id,
                    is_new=registration.partition_epoch == 0,
                )
            except ExhaustedError as e:
                _log.warning(
                    "Out of file descriptors or memory while opening %s, retrying: %s", tp, e.message
                )
                self._unopened[tp] = _Unopened(topic, registration, e.message or "")
                return
            except StorageError as e:
                _log.error("Cannot open %s: %s", tp, e)
                self._unopened.pop(tp, None)
                self.offline[tp] = e.message or ""
                return
            self._unopened.pop(tp, None)
            metrics = self._metrics.topic(topic.name)
            partition = Partition(opened, self.broker_id, metrics, self._context, self._slices)
            partition.on_settled = self.fetchers.settled
            self._remember(partition, topic.id)
        was_leader = partition.is_leader
        if registration.leader_epoch != partition.leader_epoch:
            self.fetchers.remove(tp)  # nothing of the last leader is appended any more
        if partition.apply(registration):
            if was_leader:
                changes.resigned.append(tp)
            if partition.is_leader:
                changes.elected.append(partition)
            elif partition.follower is not None:
                self.fetchers.add(topic.id.bytes, partition.follower)

    def _delete(self, topic: "TopicImage", changes: RoleChanges) -> Paced[None]:
        self._names.pop(topic.id, None)
        self._metrics.forget_topic(topic.name)
        for index in topic.partitions:
            try:
                tp = TopicPartition(topic.name, index)
                self._delete_partition(tp, changes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            except Exception:
                _log.exception("Error deleting %s-%d", topic.name, index)
            yield DELETED

    def _delete_partition(self, tp: TopicPartition, changes: RoleChanges, code: ErrorCode) -> None:
        """Remove fetcher, role and log. Waiting requests fail with `code`."""
        partition = self.partitions.get(tp)
        if partition is None:
            self.offline.pop(tp, None)
            self._unopened.pop(tp, None)
            self.logs.delete(tp)
            return
        self._forget(partition)
        if partition.is_leader:
            changes.resigned.append(tp)
        partition.stop(code)
        self.logs.delete(tp)

    # --- records --------------------------------------------------------------------------------------

    def tick_isrs(self) -> Reply[None]:
        """Let leaders propose to shrink their ISRs. Call this every half of replica.lag.time.max.ms."""
        return self._slices.run(self._tick_isrs(), own=True)

    def _tick_isrs(self) -> Paced[None]:
        for tp, partition in list(self.partitions.items()):
            leader = partition.leader
            if leader is not None and partition.is_leading:
                try:
                    leader.tick()
                except Exception:
                    _log.exception("Error looking for lagging followers of %s", tp)
            yield STEP

    def delete_records(self, tp: TopicPartition, offset: int) -> Deleted:
        """Advance the log start to `offset` (-1: the high watermark). Replicas follow with their fetches."""
        partition = self.partition(tp)
        leader = partition.require_leader()
        opened = partition.log
        if "delete" not in opened.config.cleanup_policy:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {tp} can not be deleted due to the configured policy",
            )
        if offset == LATEST_OFFSET:
            offset = opened.high_watermark
        if offset < 0 or offset > opened.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"The offset {offset} for partition {tp} is not valid."
            )
        opened.increment_log_start_offset(offset)
        assert offset <= opened.log_start_offset <= opened.high_watermark
        return Deleted(partition, offset, leader.low_watermark)
