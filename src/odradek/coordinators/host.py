"""Runs shards on the event loop: appends their records, replays them, and answers when they are committed.

Each partition of an internal topic that this node leads has a slot. A slot handles one command at a time. A
long command runs in slices and holds its slot, so that the shard does not change between two slices. Other
commands wait for the slot, short ones before long ones. Before the records are appended, as one batch, the
host checks that this node still leads the partition. Deadlines are handled in the same way, after the waiting
short commands.

An answer leaves when the high watermark has passed everything that the shard has applied: no client sees a
state that could still be lost. When many clients wait, a few are answered in each turn of the loop. If this
node loses the leadership, the shard is dropped. The next election loads it from the log.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from odradek.coordinators.loading import replay_log
from odradek.coordinators.shard import CoordinatorResult, Encoded, Now, RecordFormat, Shard, Ticket
from odradek.coordinators.slot import PartitionLog, Slot
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.core.types import NO_PRODUCER_ID
from odradek.records.control import EndTransactionMarker
from odradek.runtime.api import Clock
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Paced, Slices, at_once

_log = logging.getLogger(__name__)

SPLIT_BYTES = 256 * 1024
"""About the size of a batch, if the records of a result need not be atomic."""
LATE_S = 0.1
"""A timer that is this late means that the loop was blocked, not that members are silent."""
MAX_GRACES = 5
"""How many times in a row a late timer is postponed."""
FEW_RECORDS = 16
"""A command with at most this many records and replies is handled at once."""
RECORD_CALLS = 20
"""The cost of encoding or replaying one record."""
TICK_CALLS = 40
"""The cost of handling one deadline, in addition to the cost that the shard reports."""
APPEND_CALLS = 300
"""The cost of appending the records of a deadline, and of what follows from it."""
REPLY_CALLS = 100
"""The cost of answering a waiting request: the answer is encoded and sent in the next turn."""


class CoordinatorHost:
    def __init__(
        self,
        topic: str,
        new_shard: Callable[[int], Shard],
        record_format: RecordFormat,
        clock: Clock,
        *,
        commit_timeout_ms: int,
        load_buffer_bytes: int,
        perform: Callable[[int, Any], None] | None = None,
        slices: Slices | None = None,
    ) -> None:
        """`new_shard` gets the leader epoch of its partition, `perform` gets a partition and an effect."""
        self._topic = topic
        self._new_shard = new_shard
        self._format = record_format
        self._clock = clock
        self._commit_timeout_ms = commit_timeout_ms
        self._load_buffer_bytes = load_buffer_bytes
        self._perform = perform
        self._slices = slices or Slices()
        self._slots: dict[int, Slot] = {}
        self._tickets = 0
        self._scope = Scope(self._on_failure)

    # --- leadership -----------------------------------------------------------------------------------

    def on_elected(self, partition_index: int, partition_log: PartitionLog) -> None:
        """This node leads the partition, at a new leader epoch: load its shard."""
        self.on_resigned(partition_index)
        shard = self._new_shard(partition_log.leader_epoch)
        slot = self._slots[partition_index] = Slot(partition_index, partition_log, shard)
        if partition_log.log_start_offset == partition_log.log_end_offset:
            self._activate(slot)
        else:
            name = f"load {self._topic}-{partition_index}"
            slot.loading = self._scope.spawn(self._load(partition_index, slot), name=name)

    def on_resigned(self, partition_index: int) -> None:
        """This node no longer leads the partition: waiting clients must find the new coordinator."""
        slot = self._slots.pop(partition_index, None)
        if slot is None:
            return
        if slot.loading is not None:
            slot.loading.cancel()
        if slot.timer is not None:
            slot.timer.cancel()
        waiting = [*slot.waiting.values(), *(f for queue in slot.queues for _, f in queue)]
        slot.waiting = {}
        for queue in slot.queues:
            queue.clear()
        self._slices.run(_send_elsewhere(waiting), own=True)

    async def close(self) -> None:
        for partition_index in self.partitions:
            self.on_resigned(partition_index)
        await self._scope.close()

    @property
    def partitions(self) -> list[int]:
        """The partitions that this node leads, loaded or not."""
        return list(self._slots)

    def shards(self) -> Iterator[Shard]:
        """Every loaded shard, for reading only."""
        for slot in self._slots.values():
            if slot.is_loaded:
                yield slot.shard

    def all_shards(self) -> Iterator[Shard]:
        """Every shard, including those that are still loading."""
        for slot in self._slots.values():
            yield slot.shard

    async def _load(self, partition_index: int, slot: Slot) -> None:
        try:
            slot.applied_end_offset = await replay_log(
                slot.log, slot.shard, self._format, self._load_buffer_bytes, self._slices
            )
        except Exception:
            slot.failed = True
            _log.exception(
                "Failed to load %s-%d: this node does not coordinate it", self._topic, partition_index
            )
            return
        self._activate(slot)
        _log.info("Loaded %s-%d up to offset %d", self._topic, partition_index, slot.applied_end_offset)

    def _activate(self, slot: Slot) -> None:
        """Start the soft state. If that takes long, it holds the slot."""
        slot.is_loaded = True
        outcome = slot.shard.activate(self._now())
        if isinstance(outcome, CoordinatorResult):
            at_once(self._run(slot, outcome, None))
            self._arm(slot)
        else:
            self._handle_long(slot, outcome, None).when_ready(self._watch)

    def _watch(self, done: Reply[Any]) -> None:
        """Report failures of the node's own work, because no client waits for it."""
        if done.error is not None and not isinstance(done.error, KafkaError):
            self._on_failure(done.error)

    def _on_failure(self, error: BaseException) -> None:
        _log.error("A background task of the coordinator of %s failed", self._topic, exc_info=error)

    # --- commands -------------------------------------------------------------------------------------

    def submit(self, partition_index: int, command: Any) -> Reply[Any]:
        """Let a shard handle a command. If it refuses, the reply's error is a KafkaError or a
        ProtocolError."""
        slot = self._slots.get(partition_index)
        if slot is None or slot.failed:
            return Reply.failed(KafkaError(ErrorCode.NOT_COORDINATOR))
        if not slot.is_loaded:
            return Reply.failed(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        if slot.is_taken:
            return self._wait_for_slot(slot, command)
        self._tickets += 1
        ticket = self._tickets
        try:
            outcome = slot.shard.handle(command, ticket, self._now())
            if (
                type(outcome) is not CoordinatorResult
                or outcome.is_long
                or len(outcome.records) > FEW_RECORDS
                or len(outcome.replies) > FEW_RECORDS
            ):
                return self._handle_long(slot, outcome, ticket)
            answer = at_once(self._run(slot, outcome, ticket))
        except (KafkaError, ProtocolError) as e:
            return Reply.failed(e)
        finally:
            self._arm(slot)
        if answer is not None and slot.log.high_watermark >= slot.applied_end_offset:
            return Reply.failed(answer) if isinstance(answer, KafkaError) else Reply(answer)
        return self._answered(slot, answer, ticket)

    def _answered(self, slot: Slot, answer: Any, ticket: Ticket) -> Reply[Any]:
        """The reply to a handled command. An answer of None means that the command waits for others."""
        if answer is None:
            future = slot.waiting[ticket] = asyncio.get_running_loop().create_future()
            return Reply.later(future)
        if isinstance(answer, KafkaError):
            return Reply.failed(answer)
        if slot.log.high_watermark >= slot.applied_end_offset:
            return Reply(answer)
        committed = slot.log.when_committed(slot.applied_end_offset, self._commit_timeout_ms)
        return Reply.later(committed).then(lambda _: answer)

    # --- commands that take long ----------------------------------------------------------------------

    def _handle_long(
        self, slot: Slot, outcome: "CoordinatorResult | Paced[CoordinatorResult]", ticket: Ticket | None
    ) -> Reply[Any]:
        """Hold the slot until the command is handled."""
        slot.is_taken = True
        reply = self._slices.run(self._in_slices(slot, outcome, ticket))
        if reply.is_ready:
            return self._end_long(slot, ticket, reply)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reply.when_ready(lambda ready: _pass_on(self._end_long(slot, ticket, ready), future))
        return Reply.later(future)

    def _in_slices(
        self, slot: Slot, outcome: "CoordinatorResult | Paced[CoordinatorResult]", ticket: Ticket | None
    ) -> Paced[Any]:
        result = outcome if isinstance(outcome, CoordinatorResult) else (yield from outcome)
        return (yield from self._run(slot, result, ticket))

    def _end_long(self, slot: Slot, ticket: Ticket | None, reply: Reply[Any]) -> Reply[Any]:
        if not self._give_back(slot):
            return Reply.failed(KafkaError(ErrorCode.NOT_COORDINATOR))
        if reply.error is not None:
            return reply
        return self._answered(slot, reply.value, ticket) if ticket is not None else Reply(None)

    def _give_back(self, slot: Slot) -> bool:
        """Release the slot after a long command. Returns whether this node still leads the partition."""
        slot.is_taken = False
        if self._slots.get(slot.partition_index) is not slot:
            return False
        self._arm(slot)
        self._serve_later(slot)
        return True

    def _serve_later(self, slot: Slot) -> None:
        if not slot.is_serving and (slot.resumed or slot.waiting_short or slot.waiting_long):
            slot.is_serving = True
            asyncio.get_running_loop().call_soon(self._serve_waiting, slot)

    def _wait_for_slot(self, slot: Slot, command: Any) -> Reply[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        is_long = getattr(command, "is_long", False)
        (slot.waiting_long if is_long else slot.waiting_short).append((command, future))
        return Reply.later(future)

    def _serve_waiting(self, slot: Slot) -> None:
        """Handle commands that waited for the slot, one in each turn of the loop."""
        slot.is_serving = False
        if slot.is_taken or self._slots.get(slot.partition_index) is not slot:
            return
        queue = slot.waiting_short or slot.waiting_long
        if slot.resumed:
            at_once(self._run(slot, slot.resumed.popleft()(self._now()), None))
        elif queue:
            command, future = queue.popleft()
            _pass_on(self.submit(slot.partition_index, command), future)
        self._arm(slot)
        self._serve_later(slot)

    def _run(self, slot: Slot, result: CoordinatorResult, ticket: Ticket | None) -> Paced[Any]:
        """Carry out a result to the end. Returns the answer, or None if the command waits."""
        answer: Any = None
        later: list[Callable[[Now], CoordinatorResult]] = []
        effects: list[Any] = []
        while True:
            follow: Callable[[Now], CoordinatorResult | Paced[CoordinatorResult]] | None
            error = (yield from self._append(slot, result)) if result.records else None
            if error is None:
                answer = answer if result.response is None else result.response
                follow = result.then
                effects += result.effects
                if result.committed is not None:
                    later.append(result.committed)
            else:
                answer = error
                follow = None if result.failed is None else partial(result.failed, error)
            others = []
            for waiting, reply in result.replies:
                if waiting == ticket:
                    answer = reply
                else:
                    others.append((waiting, reply))
            if others:
                yield from self._deliver(slot, others)
            if follow is None:
                break
            try:
                followed = follow(self._now())
                result = followed if isinstance(followed, CoordinatorResult) else (yield from followed)
            except KafkaError as e:
                answer = e
                break
        for committed in later:
            self._once_safe(slot, committed)
        for effect in effects:
            assert self._perform is not None
            self._perform(slot.partition_index, effect)
        return answer

    def _once_safe(self, slot: Slot, committed: Callable[[Now], CoordinatorResult]) -> None:
        """Call `committed` when the high watermark has passed all that the shard has applied, if this node
        still leads the partition then."""
        if slot.log.high_watermark >= slot.applied_end_offset:
            at_once(self._run(slot, committed(self._now()), None))
            return

        def done(waited: "asyncio.Future[None]") -> None:
            is_safe = not waited.cancelled() and waited.exception() is None
            if not is_safe or self._slots.get(slot.partition_index) is not slot:
                return
            if slot.is_taken:
                slot.resumed.append(committed)
            else:
                at_once(self._run(slot, committed(self._now()), None))

        slot.log.when_committed(slot.applied_end_offset).add_done_callback(done)

    def _append(self, slot: Slot, result: CoordinatorResult) -> Paced[KafkaError | None]:
        """Append and replay records. Records that need not be atomic go into several batches."""
        now_ms = self._clock.now_ms()
        producer_id = NO_PRODUCER_ID if result.producer is None else result.producer[0]
        encode_long = self._format.encode_long if result.is_long else None
        encoded: list[Encoded] = []
        cuts: list[int] = []  # where batches end, to keep them small
        size = most = 0
        if result.atomic and len(result.records) > FEW_RECORDS:
            most = slot.log.max_batch_bytes
        for record in result.records:
            if encode_long is None:
                key, value = self._format.encode(record)
            else:
                key, value = yield from encode_long(record)
            encoded.append((key, value))
            size += len(key) + len(value or b"")
            if most and size > most:
                return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)
            if size >= SPLIT_BYTES and not result.atomic:
                cuts.append(len(encoded))
                size = 0
            if not len(encoded) % FEW_RECORDS:
                yield FEW_RECORDS * RECORD_CALLS
        start = 0
        for end in [*cuts, len(encoded)]:
            if start == end:
                break
            if self._slots.get(slot.partition_index) is not slot:
                return KafkaError(ErrorCode.NOT_COORDINATOR)
            try:
                end_offset = slot.log.append(encoded[start:end], now_ms, result.producer)
            except KafkaError as e:
                _log.warning("Cannot append to %s: %s", self._topic, e)
                return e
            first_offset = end_offset - (end - start)
            for i in range(start, end):
                key, value = result.records[i]
                steps = slot.shard.replay(key, value, first_offset + i - start, producer_id)
                if steps is not None:
                    yield from steps
                if not (i + 1 - start) % FEW_RECORDS:
                    yield FEW_RECORDS * RECORD_CALLS
            slot.applied_end_offset = end_offset
            start = end
        return None

    def _deliver(self, slot: Slot, replies: list[tuple[Ticket, Any]]) -> Paced[None]:
        """Answer waiting commands when the log can no longer lose what they learn.

        Each step looks up the waiting command again: a slot that was lost has already answered all of them.
        """
        yield len(replies)
        if slot.log.high_watermark >= slot.applied_end_offset:
            yield from _release(slot, replies)
            return

        def committed(done: "asyncio.Future[None]") -> None:
            error = None if done.cancelled() else done.exception()
            self._slices.run(_release(slot, replies, error), own=True)

        slot.log.when_committed(slot.applied_end_offset, self._commit_timeout_ms).add_done_callback(committed)

    def end_transaction(
        self,
        partition_index: int,
        producer: tuple[int, int],
        marker: EndTransactionMarker,
        transaction_version: int,
    ) -> "asyncio.Future[None] | None":
        """Write the end of a transaction to a shard's log and apply it. Returns None if it is committed
        already.

        Raises KafkaError.
        """
        slot = self._slots.get(partition_index)
        if slot is None or slot.failed:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not slot.is_loaded or slot.is_taken:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        end_offset = slot.log.append_marker(producer, marker, transaction_version, self._clock.now_ms())
        slot.shard.replay_marker(producer[0], marker.committed)
        slot.applied_end_offset = end_offset
        if slot.log.high_watermark >= end_offset:
            return None
        return slot.log.when_committed(end_offset, self._commit_timeout_ms)

    # --- time -----------------------------------------------------------------------------------------

    def _arm(self, slot: Slot) -> None:
        """Set the timer to the shard's next deadline. A timer that is early enough is kept."""
        deadline_ms = slot.shard.next_deadline_ms()
        if deadline_ms is None or slot.is_ticking:
            return
        at = deadline_ms / 1000
        if slot.timer is not None:
            if slot.timer.when() <= at:
                return
            slot.timer.cancel()
        loop = asyncio.get_running_loop()
        # A deadline that passed while the slot was held is not late: the loop was not blocked.
        slot.timer = loop.call_at(max(at, loop.time()), self._fire, slot)

    def _fire(self, slot: Slot) -> None:
        """Handle due deadlines. If the loop was blocked, read what waits in the sockets first."""
        assert slot.timer is not None
        loop = asyncio.get_running_loop()
        late_s = loop.time() - slot.timer.when()
        if late_s > LATE_S and slot.graces < MAX_GRACES:
            slot.graces += 1
            slot.timer = loop.call_later(min(late_s, 1.0), self._fire, slot)
            return
        slot.graces = 0
        slot.timer = None
        if slot.is_busy:
            return  # the command that holds the slot sets the timer afterwards
        slot.is_ticking = True
        self._slices.run(self._tick(slot), own=True).when_ready(partial(self._ticked, slot))

    def _tick(self, slot: Slot) -> Paced[None]:
        """Handle due deadlines one after the other. Each one holds the slot.

        Commands that already wait for the slot go first: one may be the heartbeat that a deadline is about.
        """
        while not slot.is_busy and self._slots.get(slot.partition_index) is slot:
            outcome = slot.shard.tick(self._now())
            if outcome is None:
                return
            slot.is_taken = True
            before = slot.applied_end_offset
            try:
                yield from self._in_slices(slot, outcome, None)
            finally:
                self._give_back(slot)
            yield TICK_CALLS if slot.applied_end_offset == before else TICK_CALLS + APPEND_CALLS

    def _ticked(self, slot: Slot, done: Reply[None]) -> None:
        slot.is_ticking = False
        if self._slots.get(slot.partition_index) is slot:
            self._arm(slot)
        if done.error is not None:
            self._on_failure(done.error)

    def _now(self) -> Now:
        return Now(self._clock.now_ms(), int(asyncio.get_running_loop().time() * 1000))


def _release(
    slot: Slot, replies: list[tuple[Ticket, Any]], error: BaseException | None = None
) -> Paced[None]:
    for ticket, reply in replies:
        future = slot.waiting.pop(ticket, None)
        if future is not None:
            _resolve(future, reply if error is None else error)
            yield REPLY_CALLS


def _send_elsewhere(waiting: "list[asyncio.Future[Any]]") -> Paced[None]:
    for future in waiting:
        _resolve(future, KafkaError(ErrorCode.NOT_COORDINATOR))
        yield REPLY_CALLS


def _resolve(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
        future.exception()  # mark it as retrieved: the client may be gone
    else:
        future.set_result(outcome)


def _pass_on(reply: Reply[Any], future: "asyncio.Future[Any]") -> None:
    """Resolve a future with the outcome of a reply."""
    reply.when_ready(lambda ready: _resolve(future, ready.value if ready.error is None else ready.error))
