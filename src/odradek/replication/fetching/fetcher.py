"""Fetcher: what a follower asks one leader for, and what it does with the answers. Pure.

There are num.replica.fetchers of them for each leader. `next_request` says what to ask, and the answer goes
to the method named after it. One request is in flight. broker/replica_fetchers.py has the connections.
"""

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.core.types import TopicPartition
from odradek.log.lookup import EARLIEST, LATEST
from odradek.replication.fetching.partitions import NOT_ASKED, FetchedPartition, FetchState
from odradek.replication.fetching.requests import FetchLimits, encode_partition
from odradek.replication.fetching.responses import FetchAnswer, PartitionData, PartitionKey
from odradek.replication.fetching.session import FetchSession
from odradek.runtime.slices import Paced

_log = logging.getLogger(__name__)

FIRST_BACKOFF_MS: Final = 20
"""After an election the metadata of leader and follower differ for a moment, so the first retry comes soon.
Each further one waits twice as long, up to replica.fetch.backoff.ms."""
_AT_A_TIME: Final = 16
_ASK_CALLS: Final = 6
_TAKE_CALLS: Final = 60

# The metadata of the two brokers differ, and one of them is about to learn the newer: not worth a line.
_SOON_OVER: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class FetchRequest(NamedTuple):
    """`topics` has the encoded partitions by topic id. `session` is (id, epoch)."""

    session: tuple[int, int]
    topics: dict[bytes, list[bytes]]
    forgotten: Sequence[PartitionKey]


class OffsetsRequest(NamedTuple):
    """ListOffsets: the leader's log end (LATEST) or log start (EARLIEST) of partitions."""

    timestamp: int
    partitions: dict[TopicPartition, FetchedPartition]


class Fetcher:
    """One fetcher of one leader, and its partitions."""

    def __init__(self, leader_id: int, index: int, limits: FetchLimits, backoff_ms: int) -> None:
        self.leader_id = leader_id
        self.index = index
        self.partitions: dict[PartitionKey, FetchedPartition] = {}
        self._limits = limits
        self._backoff_ms = backoff_ms
        self._session = FetchSession()
        self._changed: dict[PartitionKey, FetchedPartition] = {}
        self._forgotten: dict[PartitionKey, None] = {}
        self._waiting: dict[PartitionKey, FetchedPartition] = {}  # in any state but FETCHING
        self._unsettled: dict[PartitionKey, FetchedPartition] = {}  # a flush was due after their last append
        self._failures = 0  # requests without an answer, since the last answer
        self._retry_at_ms = 0

    # --- partitions -----------------------------------------------------------------------------------

    def add(self, partition: FetchedPartition) -> None:
        """Fetch a partition. It replaces an earlier one with the same key: an answer for that is dropped."""
        assert partition.follower.leader_id == self.leader_id
        assert partition.state is FetchState.FETCHING and partition.asked_offset == NOT_ASKED
        self._waiting.pop(partition.key, None)
        self._unsettled.pop(partition.key, None)
        self.partitions[partition.key] = partition
        self._ask_for(partition)

    def remove(self, key: PartitionKey) -> None:
        if self.partitions.pop(key, None) is not None:
            self._waiting.pop(key, None)
            self._unsettled.pop(key, None)
            self._leave_session(key)

    def _ask_for(self, partition: FetchedPartition) -> None:
        """The next request names it."""
        self._forgotten.pop(partition.key, None)
        self._changed[partition.key] = partition

    def _leave_session(self, key: PartitionKey) -> None:
        self._changed.pop(key, None)
        if key in self._session.members:
            self._forgotten[key] = None

    def _set_aside(self, partition: FetchedPartition, state: FetchState) -> None:
        """Leave the partition out of fetches."""
        assert state is not FetchState.FETCHING and self.partitions[partition.key] is partition
        partition.state = state
        partition.asked_offset = NOT_ASKED
        self._waiting[partition.key] = partition
        self._leave_session(partition.key)

    def _delay(self, partition: FetchedPartition, now_ms: int) -> None:
        partition.delayed_until_ms = now_ms + self._backoff_after(partition.retries)
        partition.retries += 1
        self._set_aside(partition, FetchState.DELAYED)

    def _backoff_after(self, retries: int) -> int:
        return min(self._backoff_ms, FIRST_BACKOFF_MS << min(retries, 16))

    def _fetch_again(self, partition: FetchedPartition) -> None:
        partition.state = FetchState.FETCHING
        del self._waiting[partition.key]
        self._ask_for(partition)

    # --- asking ---------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        """When there may be something to ask; None if only other partitions or metadata change that."""
        if len(self.partitions) > len(self._waiting):
            return self._retry_at_ms
        times = [p.delayed_until_ms for p in self._waiting.values() if p.state is FetchState.DELAYED]
        return max(min(times), self._retry_at_ms) if times else None

    @property
    def is_settled(self) -> bool:
        """Whether the next fetch may be sent: it says that this node has all records below its offsets, so
        those that must be flushed (flush.messages) are."""
        for key, partition in list(self._unsettled.items()):
            if partition.follower.is_settled or partition.state is FetchState.STOPPED:
                del self._unsettled[key]
        return not self._unsettled

    def next_request(self, now_ms: int) -> Paced[FetchRequest | OffsetsRequest | None]:
        """The next request; None if no partition can be asked for now."""
        if now_ms < self._retry_at_ms:
            return None
        if self._waiting:
            for partition in list(self._waiting.values()):
                if partition.state is FetchState.DELAYED and partition.delayed_until_ms <= now_ms:
                    self._fetch_again(partition)
            for state, timestamp in ((FetchState.LATEST, LATEST), (FetchState.EARLIEST, EARLIEST)):
                found = {p.topic_partition: p for p in self._waiting.values() if p.state is state}
                if found:
                    return OffsetsRequest(timestamp, found)
            yield _ASK_CALLS * len(self._waiting)
        return (yield from self._next_fetch())

    def _next_fetch(self) -> Paced[FetchRequest | None]:
        if len(self.partitions) == len(self._waiting):
            return None
        session = self._session
        if session.is_full:
            named = [p for p in self.partitions.values() if p.state is FetchState.FETCHING]
            session.members.clear()
            forgotten: Sequence[PartitionKey] = ()
        else:
            named = list(self._changed.values())
            forgotten = list(self._forgotten)
            for key in forgotten:
                del session.members[key]
        self._changed, self._forgotten = {}, {}
        topics: dict[bytes, list[bytes]] = {}
        max_bytes = self._limits.partition_max_bytes
        for count, partition in enumerate(named, 1):
            key = partition.key
            if self.partitions.get(key) is not partition or partition.state is not FetchState.FETCHING:
                continue  # it left while others were encoded
            follower = partition.follower
            log = follower.log
            offset, start = log.log_end_offset, log.log_start_offset
            entry = encode_partition(
                key[1], follower.leader_epoch, offset, log.latest_epoch, start, max_bytes
            )
            partition.asked_offset, partition.asked_start = offset, start
            session.members[key] = None
            if key[0] in topics:
                topics[key[0]].append(entry)
            else:
                topics[key[0]] = [entry]
            if not count % _AT_A_TIME:
                yield _AT_A_TIME * _ASK_CALLS
        return FetchRequest((session.id, session.epoch), topics, forgotten)

    def unanswered(self, now_ms: int, reason: str) -> None:
        """The leader cannot be reached, or did not answer: ask again later, in a new session."""
        level = logging.DEBUG if self._failures else logging.INFO
        _log.log(level, "Cannot fetch from broker %d: %s", self.leader_id, reason)
        self._session.failed()
        self._retry_at_ms = now_ms + self._backoff_after(self._failures)
        self._failures += 1

    # --- answers of Fetch -----------------------------------------------------------------------------

    def fetched(self, answer: FetchAnswer, now_ms: int) -> Paced[None]:
        """Apply an answer."""
        if answer.error_code:
            self._refused(known_error(answer.error_code), now_ms)
            return
        self._session.answered(answer.session_id)
        self._failures = 0
        for data in answer.partitions:
            partition = self.partitions.get(data.key)
            if (
                partition is not None
                and partition.state is FetchState.FETCHING
                and partition.asked_offset == partition.follower.log.log_end_offset
            ):  # otherwise it was asked for at another leader epoch, or not at all
                self._take(partition, data, now_ms)
            yield _TAKE_CALLS

    def _refused(self, code: ErrorCode, now_ms: int) -> None:
        """The leader refused a whole request. A session that it does not have is no failure."""
        self._session.failed(code)
        if code not in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
            self.unanswered(now_ms, f"it answered {code.name}")

    def _take(self, partition: FetchedPartition, data: PartitionData, now_ms: int) -> None:
        if data.error_code:
            self._failed(partition, known_error(data.error_code), now_ms)
            return
        follower = partition.follower
        try:
            if data.diverging is None:
                follower.append(data.records, data.high_watermark, data.log_start_offset)
            else:
                follower.truncate_diverging(*data.diverging)
        except KafkaError as e:
            self._cannot_take(partition, e, now_ms)
            return
        partition.retries = 0
        log = follower.log
        if (
            log.log_end_offset != partition.asked_offset
            or log.log_start_offset != partition.asked_start
            or data.diverging is not None
        ):
            self._changed[partition.key] = partition
            if not follower.is_settled:
                self._unsettled[partition.key] = partition

    def _cannot_take(self, partition: FetchedPartition, error: KafkaError, now_ms: int) -> None:
        """The answer is damaged, the disk failed, or descriptors or memory ran out."""
        _log.error("Cannot append records fetched for %s: %s", partition.topic_partition, error)
        if isinstance(error, StorageError):
            self._set_aside(partition, FetchState.STOPPED)
        else:
            self._delay(partition, now_ms)

    def _failed(self, partition: FetchedPartition, code: ErrorCode, now_ms: int) -> None:
        """The leader answered with an error for a partition."""
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._set_aside(partition, FetchState.LATEST)
        elif code is ErrorCode.FENCED_LEADER_EPOCH:
            # The leader has a newer epoch. The metadata that this node follows will have it, too.
            _log.info("%s: broker %d has a newer leader epoch", partition.topic_partition, self.leader_id)
            self._set_aside(partition, FetchState.STOPPED)
        else:
            if code not in _SOON_OVER:
                _log.error("Broker %d: %s for %s", self.leader_id, code.name, partition.topic_partition)
            self._delay(partition, now_ms)

    # --- answers of ListOffsets -----------------------------------------------------------------------

    def found_offsets(
        self, request: OffsetsRequest, answers: dict[TopicPartition, int | ErrorCode], now_ms: int
    ) -> None:
        """Apply the leader's log ends or log starts."""
        for tp, partition in request.partitions.items():
            is_current = self.partitions.get(partition.key) is partition
            if is_current and partition.state in (FetchState.LATEST, FetchState.EARLIEST):
                answer = answers.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR)
                try:
                    self._reset(partition, request.timestamp, answer, now_ms)
                except KafkaError as e:
                    self._cannot_take(partition, e, now_ms)

    def _reset(
        self, partition: FetchedPartition, timestamp: int, answer: int | ErrorCode, now_ms: int
    ) -> None:
        follower = partition.follower
        end = follower.log.log_end_offset
        if isinstance(answer, ErrorCode):
            if answer is ErrorCode.OFFSET_OUT_OF_RANGE:
                answer = ErrorCode.UNKNOWN_SERVER_ERROR
            self._failed(partition, answer, now_ms)
        elif timestamp == LATEST and answer >= end:
            partition.state = FetchState.EARLIEST  # the log ends below the leader's log start, or it was cut
        else:
            if timestamp == LATEST:
                follower.truncate_to_leader_end(answer)
            elif answer > end:
                follower.start_at_leader_start(answer)
            if partition.retries:  # the leader has refused the offset that it named: do not ask in circles
                self._delay(partition, now_ms)
            else:
                partition.retries = 1
                self._fetch_again(partition)


def known_error(code: int) -> ErrorCode:
    """A leader of a later version may answer with an error that this one does not know."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
