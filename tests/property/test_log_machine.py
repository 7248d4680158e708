"""A log against a simple model, on a disk that loses and tears what was not synced.

Appends, transactions, rolls, flushes, retention, truncation, changed settings, a disk that refuses, damaged
indexes, clean stops, kills and power losses in any order: what was flushed is always there, what is there was
appended, and producers and transactions follow from it.
"""

import dataclasses
import errno
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.core.errors import KafkaError, StorageError
from odradek.core.types import TopicPartition
from odradek.log.log import AppendInfo, Isolation, Log
from odradek.log.lookup import MAX_TIMESTAMP, TimestampOffset
from odradek.log.producers.rules import AppendOrigin
from odradek.log.verifying.findings import Findings
from odradek.log.verifying.partition import Circumstances, PartitionCheck
from odradek.records.batch import build_batch, iter_batches, iter_records
from odradek.records.check import CheckedRecords
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.volume import CrashModel, Volume
from tests.unit.log.support import NOW_MS, StillClock, VolumeRuntime, config, marker

TP = TopicPartition("orders", 0)
PLAIN, IDEMPOTENT, TRANSACTIONAL, MARKER = range(4)
IDEMPOTENT_ID, TRANSACTIONAL_ID = 7, 8
CONFIG = config(
    segment_bytes=900,
    index_interval_bytes=150,
    segment_index_bytes=480,
    retention_ms=-1,
    retention_bytes=-1,
    file_delete_delay_ms=0,
)


@dataclass
class Appended:
    """A batch as the model remembers it."""

    kind: int
    base_offset: int
    values: list[bytes]
    sequence: int = -1
    committed: bool = False
    forgotten: bool = False
    timestamp: int = NOW_MS
    epoch: int = 0

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values)


@dataclass
class Model:
    batches: list[Appended] = field(default_factory=list)
    start_offset: int = 0

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    def truncate(self, offset: int) -> None:
        """A batch that is cut goes as a whole."""
        self.batches = [b for b in self.batches if b.end_offset <= offset]

    def epochs(self, log_start: int) -> list[tuple[int, int]]:
        """Where each leader epoch began, as far as its records are there."""
        found: list[tuple[int, int]] = []
        for b in self.batches:
            if b.end_offset > log_start and (not found or found[-1][0] != b.epoch):
                found.append((b.epoch, max(b.base_offset, log_start)))
        return found

    def next_sequence(self, kind: int) -> int:
        return sum(len(b.values) for b in self.batches if b.kind == kind)

    def open_since(self) -> int | None:
        since = None
        for b in self.batches:
            if b.kind == TRANSACTIONAL and since is None and not b.forgotten:
                since = b.base_offset
            elif b.kind == MARKER:
                since = None
        return since

    def forget(self, log_start: int) -> None:
        """Of the open transaction, forget the batches of which no record is left."""
        since = self.open_since()
        for b in self.batches:
            if since is not None and b.base_offset >= since and b.end_offset <= log_start:
                b.forgotten = True

    def remember(self, log_start: int) -> None:
        """Where the log start was not checkpointed, a restart finds the records again."""
        for b in self.batches:
            b.forgotten = b.forgotten and b.end_offset <= log_start

    def records(self, start: int, *, committed: bool) -> list[tuple[int, bytes]]:
        """What a consumer gets from an offset on; of committed data only what is below the first open one."""
        found: list[tuple[int, bytes]] = []
        pending: list[tuple[int, bytes]] = []
        since = self.open_since() if committed else None
        for b in self.batches:
            if since is not None and b.base_offset >= since:
                break
            placed = [(b.base_offset + i, v) for i, v in enumerate(b.values) if b.base_offset + i >= start]
            if b.kind == MARKER:
                if b.committed or not committed:
                    found += pending
                pending = []
            elif b.kind == TRANSACTIONAL and committed:
                pending += placed
            else:
                found += placed
        return sorted(found)


class LogMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = StillClock()
        self.volume = Volume()
        self.model = Model()
        self.values = 0
        self.durable_end = 0
        self.flipped = False
        self.recovery_point = 0
        self.log_start = 0
        self.config = CONFIG
        self.is_damaged = False
        self.epoch = 0
        self.boot()
        self.disk.makedirs("/data")
        self.volume.sync_all()
        self.open(clean=False)

    def boot(self) -> None:
        self.runtime = VolumeRuntime(self.volume, clock=self.clock, rng=self.rng)
        self.process, self.faults, self.disk = self.runtime.process, self.runtime.faults, self.runtime.disk

    def open(self, *, clean: bool) -> None:
        self.log = Log.open(
            self.runtime,
            "/data/orders-0",
            TP,
            None,
            self.config,
            recovery_point=self.recovery_point,
            log_start_offset=self.log_start,
            clean_shutdown=clean,
        )
        self.log.advance_high_watermark(self.log.log_end_offset)

    # --- in -------------------------------------------------------------------------------------------

    def fresh(self, count: int, size: int) -> list[bytes]:
        self.values += count
        return [b"%08d" % (self.values - i) + b"." * size for i in range(count)]

    def sent(self, kind: int, appended: list[Appended]) -> Sequence[AppendInfo | KafkaError]:
        for b in appended:
            self.values += 1
            b.timestamp = NOW_MS + self.values
            b.epoch = self.epoch
        origin = AppendOrigin.COORDINATOR if kind == MARKER else AppendOrigin.CLIENT
        return self.log.append_as_leader([_set(b) for b in appended], self.epoch, origin)

    def append(self, kind: int, appended: list[Appended]) -> None:
        results = self.sent(kind, appended)
        for result, b in zip(results, appended, strict=True):
            assert not isinstance(result, Exception), result
            assert not result.duplicate
            b.base_offset = result.first_offset
            assert result.first_offset == self.model.end_offset
            self.model.batches.append(b)
        self.log.advance_high_watermark(self.log.log_end_offset)
        self.durable_end = max(self.durable_end, self.log.recovery_point)

    @rule(counts=st.lists(st.integers(1, 4), min_size=1, max_size=3), size=st.integers(0, 120))
    def append_plain(self, counts: list[int], size: int) -> None:
        appended = [Appended(PLAIN, 0, self.fresh(count, size)) for count in counts]
        self.append(PLAIN, appended)

    @rule(counts=st.lists(st.integers(1, 4), min_size=1, max_size=3))
    def append_idempotent(self, counts: list[int]) -> None:
        sequence = self.model.next_sequence(IDEMPOTENT)
        appended = []
        for count in counts:
            appended.append(Appended(IDEMPOTENT, 0, self.fresh(count, 0), sequence))
            sequence += count
        self.append(IDEMPOTENT, appended)

    @rule()
    def retry_the_last_idempotent_batch(self) -> None:
        known = [b for b in self.model.batches if b.kind == IDEMPOTENT]
        if known and known[-1].base_offset >= self.log.log_start_offset:
            (result,) = self.log.append_as_leader([_set(known[-1])], self.epoch)
            assert not isinstance(result, Exception), result
            assert (result.duplicate, result.first_offset) == (True, known[-1].base_offset)

    @rule(count=st.integers(1, 3))
    def append_transactional(self, count: int) -> None:
        sequence = self.model.next_sequence(TRANSACTIONAL)
        known = self.log.producers.entries.get(TRANSACTIONAL_ID)
        if known is not None and not known.batches:
            # Of its records only the marker is left: as in Apache Kafka it must begin anew, with a new epoch.
            return
        b = Appended(TRANSACTIONAL, 0, self.fresh(count, 0), sequence)
        self.append(TRANSACTIONAL, [b])

    @precondition(lambda self: self.model.open_since() is not None)
    @rule(committed=st.booleans())
    def end_transaction(self, committed: bool) -> None:
        b = Appended(MARKER, 0, [b""], committed=committed)
        self.append(MARKER, [b])

    @rule(steps=st.integers(1, 3))
    def elect_a_leader(self, steps: int) -> None:
        self.epoch += steps

    # --- over time ------------------------------------------------------------------------------------

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(checkpointed=st.booleans())
    def flush(self, checkpointed: bool) -> None:
        self.log.flush()
        self.durable_end = self.log.log_end_offset
        if checkpointed:
            self.recovery_point = self.log.recovery_point

    @precondition(lambda self: self.model.batches)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(self.log.log_start_offset, self.log.last_stable_offset))
        self.log.increment_log_start_offset(start)
        self.log.retain(NOW_MS)
        self.log.purge_deleted(NOW_MS)

    @rule(kept=st.sampled_from([0, 400, 1500]))
    def retain_by_size(self, kept: int) -> None:
        segments = self.log.segments.all()
        ends = [*(segment.base_offset for segment in segments[1:]), self.log.log_end_offset]
        start = self.log.log_start_offset
        live = sum(segment.size for segment, end in zip(segments, ends, strict=True) if end > start)
        self.log.update_config(dataclasses.replace(self.config, retention_bytes=kept))
        self.log.retain(NOW_MS)
        self.log.purge_deleted(NOW_MS)
        self.log.update_config(self.config)
        assert self.log.size_bytes >= min(kept, live)

    @rule(
        segment_bytes=st.sampled_from([900, 5000]),
        index_interval_bytes=st.sampled_from([0, 150, 4096]),
        segment_index_bytes=st.sampled_from([48, 480]),
        flush_messages=st.sampled_from([1, 5, 1 << 62, 1 << 62]),
        preallocate=st.booleans(),
    )
    def change_settings(self, **changes: int | bool) -> None:
        self.config = dataclasses.replace(CONFIG, **changes)  # type: ignore[arg-type]
        self.log.update_config(self.config)

    @rule()
    def checkpoint_the_log_start(self) -> None:
        self.log_start = self.log.log_start_offset

    @precondition(lambda self: self.model.end_offset > self.log.log_start_offset)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """As a follower does, never below the log start. A batch that is cut goes as a whole."""
        borders = [b.base_offset for b in self.model.batches if b.base_offset >= self.log.log_start_offset]
        if borders:
            offset = data.draw(st.sampled_from(borders))
            inside = next(b for b in self.model.batches if b.base_offset == offset)
            self.log.truncate_to(offset + data.draw(st.integers(0, len(inside.values) - 1)))
            self.model.truncate(offset)
            # Whoever leads now may have been elected before the one whose records are gone.
            kept = self.model.batches[-1].epoch if self.model.batches else 0
            self.epoch = data.draw(st.integers(kept, self.epoch + 1))
            self.durable_end = min(self.durable_end, offset)
            self.recovery_point = min(self.recovery_point, offset)

    # --- ends -----------------------------------------------------------------------------------------

    @rule(powered_off=st.booleans())
    def stop_and_start(self, powered_off: bool) -> None:
        before = self.log.log_end_offset, self.log.log_start_offset, self.log.last_stable_offset
        self.log.close()
        self.verify()
        if powered_off and self.model.end_offset > 0:
            self.process.alive = False
            self.volume.crash(self.rng, CrashModel())
        self.durable_end = self.recovery_point = self.log.log_end_offset
        self.log_start = self.log.log_start_offset
        self.boot()
        self.open(clean=True)
        assert before == (self.log.log_end_offset, self.log.log_start_offset, self.log.last_stable_offset)

    def verify(self) -> None:
        """`log verify` finds nothing wrong with a log that was closed cleanly, unless an index was damaged:
        one that nobody has needed since then is as it was."""
        if self.is_damaged:
            return
        circumstances = Circumstances(
            True, self.log.log_end_offset, self.log.log_start_offset, compacted=False
        )
        into = Findings()
        extent = PartitionCheck(self.disk, "/data/orders-0", circumstances, into).run()
        # A flipped bit in an index is found when a read comes upon it, which may never be.
        indexes = (".index", ".timeindex") if self.flipped else ()
        found = [finding for finding in into.all() if not finding.file.endswith(indexes)]
        assert found == [], found
        assert extent.end_offset == self.log.log_end_offset

    @rule()
    def kill(self) -> None:
        """The process dies, the machine does not: nothing that was written is lost."""
        end = self.log.log_end_offset
        self.die()
        assert self.log.log_end_offset == end

    def die(self) -> None:
        self.process.alive = False
        self.boot()
        self.open(clean=False)
        self.model.remember(self.log.log_start_offset)

    @rule(
        operation=st.sampled_from(["pwrite", "open", "ftruncate"]),
        code=st.sampled_from([errno.ENOSPC, errno.EIO]),
        counts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
        size=st.integers(0, 120),
        rolled=st.booleans(),
    )
    def meet_a_disk_that_refuses(
        self, operation: str, code: int, counts: list[int], size: int, rolled: bool
    ) -> None:
        """In an append, a roll or a flush. Of what was not acknowledged a beginning may be there.

        Not in a sync: after one that failed a disk may lose what it seems to hold, until it is written anew.
        """
        self.faults.rules.append(DiskFault(code, [operation], "/data/orders-0/*", times=1))
        appended = [Appended(PLAIN, 0, self.fresh(count, size)) for count in counts]
        try:
            if rolled:
                self.log.roll()
            self.sent(PLAIN, appended)
            self.log.flush()
        except StorageError:
            assert self.log.failure is not None
        self.die()
        assert self.log.log_end_offset >= self.model.end_offset
        for b in appended:
            if self.model.end_offset < self.log.log_end_offset:
                b.base_offset = self.model.end_offset
                self.model.batches.append(b)
        assert self.log.log_end_offset == self.model.end_offset

    @rule(
        suffix=st.sampled_from([".index", ".timeindex"]),
        damage=st.sampled_from(["removed", "emptied", "zeros", "flipped"]),
        data=st.data(),
    )
    def find_an_index_damaged(self, suffix: str, damage: str, data: st.DataObject) -> None:
        """What the log itself tells is not lost with an index."""
        before = self.log.log_end_offset, self.log.log_start_offset, self.log.last_stable_offset
        self.log.close()
        self.recovery_point = self.durable_end = self.log.log_end_offset
        self.log_start = self.log.log_start_offset
        path = data.draw(
            st.sampled_from([path for path in self.volume.files() if path.endswith(suffix)] or [""])
        )
        if path:
            self.is_damaged = True
            self.damage(path, damage)
        self.process.alive = False
        self.boot()
        self.open(clean=True)
        assert before == (self.log.log_end_offset, self.log.log_start_offset, self.log.last_stable_offset)

    def damage(self, path: str, how: str) -> None:
        file = self.volume.find_file(path)
        if how == "removed":
            self.volume.unlink(path)
        elif how == "emptied":
            file.truncate(0)
        elif how == "zeros":
            file.write(file.data.size, bytes(48))
        elif file.data.size:
            self.flipped = True
            at = self.rng.randrange(file.data.size)
            file.write(at, bytes([file.data.read(at, 1)[0] ^ 1 << self.rng.randrange(8)]))

    @rule(model=st.sampled_from([CrashModel(), CrashModel(0, 1, 0, 0), CrashModel(0, 0, 0.5, 0.5)]))
    def lose_power(self, model: CrashModel) -> None:
        self.process.alive = False
        self.volume.crash(self.rng, model)
        self.boot()
        self.open(clean=False)
        end = self.log.log_end_offset
        assert self.durable_end <= end <= max(self.model.end_offset, self.log_start)
        self.model.truncate(end)
        self.model.remember(self.log.log_start_offset)
        if self.model.end_offset != end:
            # Nothing is left: the log begins anew, without producers, where it is known to have begun.
            assert end == self.log.log_start_offset == self.log_start
            assert not self.log.producers.entries
            self.model = Model(start_offset=end)

    # --- what must hold -------------------------------------------------------------------------------

    @invariant()
    def offsets_are_in_order(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
        assert log.recovery_point <= log.log_end_offset
        if log.producers.first_unstable_offset != self.model.open_since():
            # A restart or a truncation replays what is left of a log, and knows of nothing else.
            self.model.forget(log.log_start_offset)
        since = self.model.open_since()
        assert log.last_stable_offset == (
            log.high_watermark if since is None else max(since, log.log_start_offset)
        )

    @invariant()
    def epochs_are_those_of_the_records(self) -> None:
        """One that has begun at the end, without a record yet, may be known or not."""
        if not hasattr(self, "log"):
            return
        known = [entry for entry in self.log.epochs.entries if entry[1] < self.log.log_end_offset]
        assert known == self.model.epochs(self.log.log_start_offset)

    @invariant()
    def readers_see_the_model(self) -> None:
        if not hasattr(self, "log"):
            return
        start = self.log.log_start_offset
        offset = self.rng.randint(start, self.log.log_end_offset)
        for begin in (start, offset):
            assert self.consume(begin, Isolation.HIGH_WATERMARK) == self.model.records(begin, committed=False)
        assert self.consume(start, Isolation.TXN_COMMITTED) == self.model.records(start, committed=True)

    @invariant()
    def times_lead_to_records(self) -> None:
        if not hasattr(self, "log"):
            return
        start = self.log.log_start_offset
        known = [b for b in self.model.batches if b.end_offset > start]
        if known:
            b = self.rng.choice(known)
            found = self.log.offset_for_timestamp(b.timestamp)
            assert isinstance(found, TimestampOffset)
            assert (found.timestamp, found.offset) == (b.timestamp, max(b.base_offset, start))
            newest = self.log.offset_for_timestamp(MAX_TIMESTAMP)
            assert isinstance(newest, TimestampOffset)
            assert newest.timestamp == known[-1].timestamp

    def consume(self, start: int, isolation: Isolation) -> list[tuple[int, bytes]]:
        found = []
        offset = start
        while (info := self.log.read(offset, 300, isolation)).slice is not None:
            data = info.slice.read()
            aborted = list(info.aborted or [])
            for located in iter_batches(data):
                gone = [txn for txn in aborted if txn[1] <= located.last_offset]
                if located.is_control:
                    aborted = [txn for txn in aborted if txn not in gone[:1]]
                elif not (gone and located.is_transactional):
                    records = list(iter_records(data, located))
                    found += [(r.offset, r.value or b"") for r in records if r.offset >= start]
                offset = located.last_offset + 1
        return found


def _set(b: Appended) -> CheckedRecords:
    if b.kind == MARKER:
        return marker(committed=b.committed, producer_id=TRANSACTIONAL_ID, timestamp=b.timestamp)
    producer_id = {PLAIN: -1, IDEMPOTENT: IDEMPOTENT_ID, TRANSACTIONAL: TRANSACTIONAL_ID}[b.kind]
    data = build_batch(
        [(b.timestamp, None, value, ()) for value in b.values],
        producer_id=producer_id,
        producer_epoch=-1 if b.kind == PLAIN else 0,
        base_sequence=b.sequence,
        transactional=b.kind == TRANSACTIONAL,
    )
    return CheckedRecords(data, list(iter_batches(data)))


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
