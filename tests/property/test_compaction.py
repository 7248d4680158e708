"""A compacted log against a simple model, on a disk that loses and tears what was not synced.

After any sequence of appends, truncations, retention, cleanings, crashes and full disks: readers see the last
value of every key in offset order, records that must not be cleaned yet are unchanged, and a flushed value is
removed only when a newer flushed one replaces it.
"""

import contextlib
import errno
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.log.cleaning.candidates import examine
from odradek.log.log import Isolation, Log
from odradek.log.producers.rules import AppendOrigin
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.process import ProcessCrashed
from odradek.sim.world.volume import CrashModel, Volume
from tests.support.cleaning import SETTINGS, batches, clean, keyed
from tests.unit.log.support import TP, StillClock, VolumeRuntime, append, config, consume, marker

CONFIG: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 700,
    "index_interval_bytes": 120,
    "segment_index_bytes": 480,
    "delete_retention_ms": 1000,
    "file_delete_delay_ms": 0,
    "retention_ms": -1,
}
PATH = f"/data/{TP}"
IDEMPOTENT, TRANSACTIONAL, MARKER = 7, 8, 9
Pair = tuple[bytes, bytes | None]
PAIRS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.one_of(st.none(), st.binary(max_size=30))),
    min_size=1,
    max_size=4,
)
CRASHES = st.sampled_from([CrashModel(), CrashModel(0, 1, 0, 0), CrashModel(0, 0, 0.5, 0.5)])


@dataclass
class Appended:
    """A batch as the model remembers it."""

    producer: int | None
    base_offset: int
    pairs: list[Pair]
    sequence: int = -1
    committed: bool = False

    @property
    def end_offset(self) -> int:
        return self.base_offset + (len(self.pairs) or 1)


@dataclass
class Model:
    batches: list[Appended] = field(default_factory=list)
    end_offset: int = 0

    def add(self, appended: Appended) -> None:
        assert appended.base_offset == self.end_offset
        self.batches.append(appended)
        self.end_offset = appended.end_offset

    def truncate(self, offset: int) -> None:
        self.batches = [b for b in self.batches if b.end_offset <= offset]
        self.end_offset = offset

    def next_sequence(self, producer: int | None) -> int:
        last = next((b for b in reversed(self.batches) if b.producer == producer), None)
        return last.sequence + len(last.pairs) if last is not None else 0

    def decided(self) -> tuple[dict[int, Pair], dict[int, Pair]]:
        """The records that a reader of committed data may see, and those of the open transaction."""
        found: dict[int, Pair] = {}
        undecided: dict[int, Pair] = {}
        for b in self.batches:
            placed = {b.base_offset + i: pair for i, pair in enumerate(b.pairs)}
            if b.producer == MARKER:
                if b.committed:
                    found |= undecided
                undecided = {}
            elif b.producer == TRANSACTIONAL:
                undecided |= placed
            else:
                found |= placed
        return found, undecided


class CompactionMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = StillClock()
        self.volume = Volume()
        self.model = Model()
        self.durable_end = self.recovery_point = self.log_start = self.truncatable_from = 0
        self.cleaned: int | None = None
        self.boot()
        self.runtime.disk.makedirs("/data")
        self.volume.sync_all()
        self.open(clean_stop=False)

    def boot(self) -> None:
        self.runtime = VolumeRuntime(self.volume, clock=self.clock, rng=self.rng)
        self.process, self.faults = self.runtime.process, self.runtime.faults

    def open(self, *, clean_stop: bool, **changes: Any) -> None:
        self.log = Log.open(
            self.runtime,
            PATH,
            TP,
            None,
            config(**{**CONFIG, **changes}),
            recovery_point=self.recovery_point,
            log_start_offset=self.log_start,
            cleaned_offset=self.cleaned,
            clean_shutdown=clean_stop,
        )
        self.log.update_config(config(**CONFIG))
        self.log.advance_high_watermark(self.log.log_end_offset)
        left = [name for name in self.runtime.disk.listdir(PATH) if name.endswith((".cleaned", ".swap"))]
        assert left == []

    # --- in -------------------------------------------------------------------------------------------

    def _append(self, pairs: list[Pair], producer: int | None, codec: int) -> None:
        fields: dict[str, Any] = {"codec": codec, "timestamp": self.clock.ms}
        sequence = self.model.next_sequence(producer)
        if producer is not None:
            fields |= {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": sequence,
                "transactional": producer == TRANSACTIONAL,
            }
        (info,) = append(self.log, keyed(pairs, **fields))
        assert not info.duplicate
        self.model.add(Appended(producer, info.first_offset, pairs, sequence))

    @rule(pairs=PAIRS, idempotent=st.booleans(), codec=st.sampled_from((0, 0, 1, 2, 3, 4)))
    def put(self, pairs: list[Pair], idempotent: bool, codec: int) -> None:
        self._append(pairs, IDEMPOTENT if idempotent else None, codec)

    @rule(pairs=PAIRS, codec=st.sampled_from((0, 0, 4)))
    def put_in_transaction(self, pairs: list[Pair], codec: int) -> None:
        known = self.log.producers.entries.get(TRANSACTIONAL)
        if known is None or known.batches:  # with only a marker left it would have to begin anew
            self._append(pairs, TRANSACTIONAL, codec)

    @precondition(lambda self: self.model.decided()[1])
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        end = marker(committed=commit, producer_id=TRANSACTIONAL, timestamp=self.clock.ms)
        (info,) = append(self.log, end, origin=AppendOrigin.COORDINATOR)
        self.model.add(Appended(MARKER, info.first_offset, [], committed=commit))

    # --- over time ------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from((1, 500, 1000, 3000)))
    def wait(self, ms: int) -> None:
        self.clock.ms += ms

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(checkpointed=st.booleans())
    def flush(self, checkpointed: bool) -> None:
        self.log.flush()
        self._flushed()
        if checkpointed:
            self.recovery_point = self.log.recovery_point

    @rule(
        slots=st.sampled_from((6, 60, 1000)),
        chunk_bytes=st.sampled_from((1, 16384)),
        lag_ms=st.sampled_from((0, 0, 1000)),
        checkpointed=st.booleans(),
    )
    def clean(self, slots: int, chunk_bytes: int, lag_ms: int, checkpointed: bool) -> None:
        log = self.log
        log.update_config(config(**CONFIG, min_compaction_lag_ms=lag_ms))
        end = examine(log, self.clock.ms).first_uncleanable_offset
        before = [(meta, found) for meta, found in batches(log) if meta.base_offset >= end]
        dirty_before = log.cleaned_offset or 0
        self._clean(slots, chunk_bytes)
        untouched = [(meta, found) for meta, found in batches(log) if meta.base_offset >= end]
        assert [m._replace(position=0) for m, _ in untouched] == [m._replace(position=0) for m, _ in before]
        assert [found for _, found in untouched] == [found for _, found in before]
        assert log.cleaned_offset is not None
        assert dirty_before <= log.cleaned_offset <= max(end, dirty_before, log.log_start_offset)
        self._keys_are_unique_below(log.cleaned_offset)
        if checkpointed:
            self.cleaned, self.log_start = log.cleaned_offset, log.log_start_offset

    def _clean(self, slots: int = 1000, chunk_bytes: int = 16384) -> None:
        self.truncatable_from = self.log.log_end_offset
        how = SETTINGS._replace(dedupe_buffer_bytes=24 * slots, io_buffer_bytes=chunk_bytes)
        clean(self.log, self.runtime, settings=how, budget_bytes=1, after_flush=self._flushed)

    def _flushed(self) -> None:
        self.durable_end = self.log.log_end_offset

    def _keys_are_unique_below(self, offset: int) -> None:
        keys = [
            r.key
            for meta, found in batches(self.log)
            if not meta.is_control
            for r in found
            if self.log.log_start_offset <= r.offset < offset
        ]
        assert len(keys) == len(set(keys)), "below the first dirty offset every key is there once"

    @rule(operation=st.sampled_from(["open", "pwrite"]), code=st.sampled_from([errno.ENOSPC, errno.EIO]))
    def clean_on_a_disk_that_refuses(self, operation: str, code: int) -> None:
        """The log is as it was, or cleaned in part, and serves on; nothing is left of what was begun."""
        self.faults.rules.append(DiskFault(code, [operation], "*.cleaned", times=1))
        with contextlib.suppress(OSError):
            self._clean()
        self.faults.rules.clear()
        assert self.log.failure is None
        assert not [name for name in self.runtime.disk.listdir(PATH) if name.endswith(".cleaned")]

    @precondition(lambda self: not self.model.decided()[1])
    @rule(data=st.data(), kept=st.sampled_from([None, 0, 900]), checkpointed=st.booleans())
    def retain(self, data: st.DataObject, kept: int | None, checkpointed: bool) -> None:
        """By DeleteRecords, or by size where the policy is compact,delete."""
        self.flush(checkpointed=True)
        self.truncatable_from = self.log.log_end_offset
        if kept is None:
            self.log.increment_log_start_offset(
                data.draw(st.integers(self.log.log_start_offset, self.log.high_watermark))
            )
        else:
            both = {**CONFIG, "cleanup_policy": ("compact", "delete"), "retention_bytes": kept}
            self.log.update_config(config(**both))
        self.log.retain(self.clock.ms)
        self.log.purge_deleted(self.clock.ms)
        self.log.update_config(config(**CONFIG))
        if checkpointed:
            self.log_start = self.log.log_start_offset

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """As a follower does, above its high watermark: cleaning and retention never come that far."""
        borders = [b.base_offset for b in self.model.batches if b.base_offset >= self.truncatable_from]
        if borders:
            offset = data.draw(st.sampled_from(borders))
            self.log.truncate_to(offset)
            self.model.truncate(offset)
            self.durable_end = min(self.durable_end, offset)
            self.recovery_point = min(self.recovery_point, offset)
            self.cleaned = None if self.cleaned is None else min(self.cleaned, offset)

    # --- ends -----------------------------------------------------------------------------------------

    @rule(powered_off=st.booleans(), compacted=st.booleans(), snapshots=st.booleans())
    def stop_and_start(self, powered_off: bool, compacted: bool, snapshots: bool) -> None:
        """Also under the policy delete, where gaps that a cleaning left must not look like damage."""
        self.log.close()
        before = self.log.log_end_offset
        if powered_off and before > 0:
            self.process.alive = False
            self.volume.crash(self.rng, CrashModel())
        self.recovery_point = self.durable_end = before
        self.log_start, self.cleaned = self.log.log_start_offset, self.log.cleaned_offset
        if not snapshots:
            for path in [path for path in self.volume.files() if path.endswith(".snapshot")]:
                self.volume.unlink(path)
        self.boot()
        self.open(clean_stop=True, cleanup_policy=("compact",) if compacted else ("delete",))
        assert self.log.log_end_offset == before

    @rule()
    def kill(self) -> None:
        """The process dies, the machine does not: nothing that was written is lost."""
        end = self.log.log_end_offset
        self.process.alive = False
        self.boot()
        self.open(clean_stop=False)
        assert self.log.log_end_offset == end

    @rule(model=CRASHES)
    def lose_power(self, model: CrashModel) -> None:
        self.process.alive = False
        self.volume.crash(self.rng, model)
        self.restart_after_power_loss()

    @rule(model=CRASHES, fuse=st.integers(0, 60))
    def lose_power_while_cleaning(self, model: CrashModel, fuse: int) -> None:
        def crash() -> None:
            self.process.alive = False
            self.volume.crash(self.rng, model)

        self.process.on_burnt = crash
        self.process.fuse = fuse
        try:
            self._clean()
        except ProcessCrashed:
            self.restart_after_power_loss()
        self.process.fuse = None

    def restart_after_power_loss(self) -> None:
        self.boot()
        self.open(clean_stop=False)
        end = self.log.log_end_offset
        assert self.durable_end <= end <= self.model.end_offset
        # Of what was not flushed some may be gone: gaps are nothing unusual in a compacted log.
        there = {meta.base_offset for meta, _ in batches(self.log)}
        self.model.batches = [
            b for b in self.model.batches if b.end_offset <= self.durable_end or b.base_offset in there
        ]
        self.model.end_offset = end

    # --- what must hold -------------------------------------------------------------------------------

    @invariant()
    def readers_see_the_last_value_of_every_key(self) -> None:
        if not hasattr(self, "log"):
            return
        bound, start = self.log.last_stable_offset, self.log.log_start_offset
        committed = consume(self.log, Isolation.TXN_COMMITTED, 400)
        found = [record for record in committed if start <= record.offset < bound]
        appended, undecided = self.model.decided()
        assert bound == min(undecided, default=self.log.high_watermark)
        assert [r.offset for r in found] == sorted({r.offset for r in found})
        for record in found:
            assert appended[record.offset] == (record.key, record.value), "nothing is invented"
        expected: dict[bytes, tuple[int, bytes | None]] = {}
        for offset, (key, value) in sorted(appended.items()):
            if start <= offset < bound:
                expected[key] = (offset, value)
        seen = {record.key: (record.offset, record.value) for record in found}
        for key, (offset, value) in expected.items():
            if value is not None or key in seen:
                assert seen.get(key) == (offset, value)
        # A key that is missing was deleted.
        assert all(expected[key][1] is None for key in expected.keys() - seen.keys())


TestCompaction = CompactionMachine.TestCase
TestCompaction.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
pytestmark = pytest.mark.timeout(300)
