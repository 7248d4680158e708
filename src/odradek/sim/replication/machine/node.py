"""MachineNode: one life of a broker with one partition: the real roles, fetchers and proposals over a log
without files and a network without sockets.

Real are ReplicaManager, Partition, PartitionLeader, PartitionFollower, Fetcher and IsrProposals, and what a
leader does with a fetch (replication/follower_fetch.py, replication/fetch.py).
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.metrics import IsrMetrics, Metrics
from odradek.core.types import TopicPartition
from odradek.log.log import Isolation
from odradek.metadata.image import MetadataImage
from odradek.replication.context import LeaderContext
from odradek.replication.fetch import read_partitions
from odradek.replication.fetch_sessions import PartitionFetch
from odradek.replication.fetching.fetcher import Fetcher, FetchRequest, OffsetsRequest
from odradek.replication.fetching.manager import FetcherManager, FetcherSettings
from odradek.replication.fetching.requests import _PARTITION as PARTITION_ENTRY
from odradek.replication.fetching.requests import FetchLimits
from odradek.replication.fetching.responses import FetchAnswer, PartitionData
from odradek.replication.follower_fetch import FetchingReplica, record_progress
from odradek.replication.leader import PartitionLeader
from odradek.replication.manager import ReplicaManager
from odradek.replication.partition import Partition
from odradek.sim.replication.machine.controller import run
from odradek.sim.replication.machine.log import PARTITION, TOPIC_ID, MachineLog

if TYPE_CHECKING:
    from odradek.sim.replication.machine.world import MachineWorld

MAX_LAG_MS = 300
TICK_MS = MAX_LAG_MS // 2
CHECKPOINT_MS = 400
RETRY_MS = 50
EMPTY_MS = 80
_SETTINGS = FetcherSettings(limits=FetchLimits(500, 1, 1 << 20, 1 << 20), backoff_ms=100)
_MOST_BYTES = 200


class Asked(NamedTuple):
    """What a follower asks a leader for: records, or with `timestamp` the end or the start of its log."""

    follower: FetchingReplica
    fetch: PartitionFetch | None
    timestamp: int = 0
    leader_epoch: int = -1


class _Logs:
    """Stands for the LogManager: it has one log."""

    def __init__(self, log: MachineLog) -> None:
        self._log = log

    def get_or_create(self, *args: object, **kwargs: object) -> MachineLog:
        return self._log


class MachineNode:
    def __init__(self, world: "MachineWorld", node_id: int, log: MachineLog, epoch: int) -> None:
        self.world = world
        self.node_id = node_id
        self.log = log
        self.broker_epoch = epoch
        self.is_alive = True
        self.is_paused = False
        self.image = MetadataImage()
        self._held: list[Callable[[], None]] = []
        clock: Any = SimpleNamespace(steady_ms=lambda: world.now_ms, now_ms=lambda: world.now_ms)
        self.context = LeaderContext(clock, lambda: self.image, MAX_LAG_MS, IsrMetrics())
        self.context.proposals.on_news = self._propose_soon
        self._proposing = False
        self.fetchers: dict[int, _Running] = {}
        self.manager = FetcherManager(_SETTINGS, self._start_fetcher)
        logs: Any = _Logs(log)
        self.replicas = ReplicaManager(
            node_id,
            logs,
            Metrics(),
            lambda topic: log.config,
            self.context,
            fetchers=self.manager,
        )
        log.on_append = self._appended
        self.later(TICK_MS, self._tick)
        self.later(CHECKPOINT_MS, self._checkpoint)

    @property
    def partition(self) -> Partition | None:
        return self.replicas.partitions.get(PARTITION)

    @property
    def leader(self) -> PartitionLeader | None:
        partition = self.partition
        return None if partition is None else partition.leader

    # --- time -----------------------------------------------------------------------------------------

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Nothing happens in a node that is dead, and nothing yet in one that is paused."""
        self.world.after(delay_ms, partial(self.do, action))

    def do(self, action: Callable[[], None]) -> None:
        if self.is_paused:
            self._held.append(action)
        elif self.is_alive:
            action()

    def resume(self) -> None:
        self.is_paused = False
        held, self._held = self._held, []
        for action in held:
            self.do(action)

    def _tick(self) -> None:
        self.later(TICK_MS, self._tick)
        leader = self.leader
        if leader is not None:
            leader.tick()

    def _checkpoint(self) -> None:
        self.later(CHECKPOINT_MS, self._checkpoint)
        self.log.disk.high_watermark = self.log.high_watermark
        if self.world.random.random() < 0.2:
            self.log.flush()

    def _appended(self) -> None:
        if self.log.flushes_by_count:
            self.later(1 + self.world.random.randrange(6), self._flush)

    def _flush(self) -> None:
        self.log.flush()
        self.manager.settled(PARTITION)

    # --- metadata -------------------------------------------------------------------------------------

    def show(self, image: MetadataImage) -> None:
        before, self.image = self.image, image
        topic = image.topics_by_id[TOPIC_ID]
        if before.topics_by_id.get(TOPIC_ID) is not topic:
            delta: Any = SimpleNamespace(
                deleted_topics=(), changed_partitions=[(topic, 0, topic.partitions[0])]
            )
            run(self.replicas.apply_delta(delta))

    # --- followers ------------------------------------------------------------------------------------

    def _start_fetcher(self, fetcher: Fetcher) -> "_Running":
        return _Running(self, fetcher)

    def serve(self, asked: Asked, answer: Callable[[Any], None]) -> None:
        """A follower asks this node. A fetch without news is answered a little later."""
        fetch = asked.fetch
        if fetch is None:
            answer(self._offset(asked))
            return
        wanted: Any = {(TOPIC_ID, 0): fetch}
        run(record_progress(self.replicas, wanted, asked.follower))
        if self._read(wanted, asked.follower).size:
            answer(self._fetched(wanted, asked.follower))
        else:
            self.later(
                1 + self.world.random.randrange(EMPTY_MS),
                lambda: answer(self._fetched(wanted, asked.follower)),
            )

    def _read(self, wanted: Any, follower: FetchingReplica) -> Any:
        return run(
            read_partitions(self.replicas, wanted, _MOST_BYTES, Isolation.LOG_END, follower, most_files=9)
        )

    def _fetched(self, wanted: Any, follower: FetchingReplica) -> FetchAnswer:
        (answer,) = self._read(wanted, follower).answers
        records = None if answer.records is None else memoryview(answer.records.read())
        data = PartitionData(
            (TOPIC_ID.bytes, 0),
            answer.error,
            answer.high_watermark,
            answer.log_start_offset,
            answer.diverging_epoch,
            records,
        )
        return FetchAnswer(0, 0, [data])

    def _offset(self, asked: Asked) -> dict[TopicPartition, int | ErrorCode]:
        try:
            self.replicas.partition(PARTITION).require_leader(asked.leader_epoch)
        except KafkaError as e:
            return {PARTITION: e.code}
        is_latest = asked.timestamp == -1
        return {PARTITION: self.log.log_end_offset if is_latest else self.log.log_start_offset}

    # --- proposals ------------------------------------------------------------------------------------

    def _propose_soon(self) -> None:
        if not self._proposing:
            self._proposing = True
            self.later(0, self._propose)

    def _propose(self) -> None:
        """One request at a time, as broker/isr_sender.py sends them."""
        request = run(self.context.proposals.next_request(self.node_id, self.broker_epoch))
        self._proposing = request is not None
        if request is not None:
            self.world.ask_controller(self, request, self._proposed)

    def _proposed(self, response: Any) -> None:
        proposals = self.context.proposals
        again = True
        if response is None or response.error_code:
            proposals.failed()
        else:
            again = run(proposals.settle(response))
        if again:
            self.later(RETRY_MS, self._propose)
        else:
            self._propose()

    # --- clients --------------------------------------------------------------------------------------

    def produce(self, count: int, done: Callable[[int, KafkaError | None], None], *, acks_all: bool) -> None:
        """`done` gets the base offset."""
        partition = self.partition
        if partition is None:
            return
        sets: Any = [count]
        try:
            (info,) = partition.append_as_leader(sets, acks_all=acks_all)
        except KafkaError:
            return
        leader = partition.leader
        assert leader is not None and not isinstance(info, KafkaError)
        if acks_all:
            leader.commit_waiters.add(info.last_offset + 1, partial(done, info.first_offset))
            leader.commit_waiters.release(self.log.high_watermark)


class _Running:
    """A fetcher and its connection: one request in flight."""

    def __init__(self, node: MachineNode, fetcher: Fetcher) -> None:
        self._node = node
        self._fetcher = fetcher
        self._in_flight = 0
        self._number = 0
        self._is_closed = False

    def wake(self) -> None:
        if not self._in_flight and not self._is_closed:
            self._node.later(0, self._ask)

    def close(self) -> None:
        self._is_closed = True

    def _ask(self) -> None:
        node, fetcher = self._node, self._fetcher
        if self._is_closed or self._in_flight or not fetcher.is_settled:
            return
        request = run(fetcher.next_request(node.world.now_ms))
        if request is None:
            wake_at = fetcher.wake_at_ms
            if wake_at is not None:
                node.later(max(1, wake_at - node.world.now_ms), self._ask)
            return
        self._number += 1
        self._in_flight = number = self._number
        node.world.ask_leader(
            node, fetcher.leader_id, self._asked(request), partial(self._answered, number, request)
        )

    def _asked(self, request: FetchRequest | OffsetsRequest) -> Asked:
        node = self._node
        follower = FetchingReplica(node.node_id, node.broker_epoch)
        if isinstance(request, OffsetsRequest):
            (partition,) = request.partitions.values()
            return Asked(follower, None, request.timestamp, partition.follower.leader_epoch)
        ((entry,),) = request.topics.values()
        _, epoch, offset, last_epoch, start, most = PARTITION_ENTRY.unpack(entry)
        return Asked(follower, PartitionFetch(offset, most, epoch, last_epoch, start))

    def _answered(self, number: int, request: FetchRequest | OffsetsRequest, answer: Any) -> None:
        """None: no answer will come."""
        if number != self._in_flight or self._is_closed:
            return
        self._in_flight = 0
        now_ms = self._node.world.now_ms
        if answer is None:
            self._fetcher.unanswered(now_ms, "no answer")
        elif isinstance(request, OffsetsRequest):
            self._fetcher.found_offsets(request, answer, now_ms)
        else:
            run(self._fetcher.fetched(answer, now_ms))
        self._ask()
