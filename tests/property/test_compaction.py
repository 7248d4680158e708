"""A compacted log against a dict: whatever was appended and however often it was cleaned, readers see the
last value of every key in offset order, and nothing that could not be cleaned yet was touched.

Producers with and without sequences, transactions, codecs, tombstones and segments of every size, with
restarts in between.
"""

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.log.cleaning.candidates import examine
from odradek.log.log import Isolation, Log
from odradek.records.batch import Record, iter_batches, iter_records
from odradek.records.check import Origin
from odradek.records.control import ControlType, parse_control_key
from tests.support.cleaning import SETTINGS, batches, clean, keyed
from tests.unit.log.support import LogRuntime, append, config, marker, open_log

DELETE_RETENTION_MS = 1000
CONFIG: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 700,
    "index_interval_bytes": 120,
    "segment_index_bytes": 480,
    "delete_retention_ms": DELETE_RETENTION_MS,
    "file_delete_delay_ms": 0,
}
IDEMPOTENT, TRANSACTIONAL = 7, 8
PAIRS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.one_of(st.none(), st.binary(max_size=30))),
    min_size=1,
    max_size=4,
)


def committed(log: Log) -> list[Record]:
    """What a consumer with read_committed makes of what it fetches."""
    found: list[Record] = []
    offset = log.log_start_offset
    while True:
        info = log.read(offset, 400, Isolation.TXN_COMMITTED)
        if info.slice is None:
            return found
        data = info.slice.read()
        aborted = sorted(info.aborted or [], key=lambda txn: txn[1])
        skipped: set[int] = set()
        for batch in iter_batches(data):
            while aborted and aborted[0][1] <= batch.last_offset:
                skipped.add(aborted.pop(0)[0])
            records = list(iter_records(data, batch))
            if batch.is_control:
                if records and parse_control_key(records[0].key) is ControlType.ABORT:
                    skipped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in skipped):
                found += [record for record in records if record.offset >= offset]
            offset = batch.last_offset + 1


class CompactionMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="odradek-compaction-"))
        self.runtime = LogRuntime()
        self.runtime.rng = random.Random(seed)
        self.log = open_log(self.runtime, self.path, changes=CONFIG)
        self.appended: dict[int, tuple[bytes, bytes | None]] = {}
        self.open: dict[int, tuple[bytes, bytes | None]] = {}
        self.sequences = {IDEMPOTENT: 0, TRANSACTIONAL: 0}

    def teardown(self) -> None:
        if hasattr(self, "path"):
            self.log.close()
            shutil.rmtree(self.path)

    def _append(self, pairs: Any, producer: int | None, codec: int) -> dict[int, tuple[bytes, bytes | None]]:
        fields: dict[str, Any] = {"codec": codec, "timestamp": self.runtime.clock.ms}
        if producer is not None:
            fields |= {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": self.sequences[producer],
                "transactional": producer == TRANSACTIONAL,
            }
            self.sequences[producer] += len(pairs)
        (info,) = append(self.log, keyed(pairs, **fields))
        assert not info.duplicate
        return {info.first_offset + i: pair for i, pair in enumerate(pairs)}

    @rule(pairs=PAIRS, idempotent=st.booleans(), codec=st.sampled_from((0, 0, 1, 2, 3, 4)))
    def put(self, pairs: Any, idempotent: bool, codec: int) -> None:
        self.appended |= self._append(pairs, IDEMPOTENT if idempotent else None, codec)

    @rule(pairs=PAIRS, codec=st.sampled_from((0, 0, 4)))
    def put_in_transaction(self, pairs: Any, codec: int) -> None:
        self.open |= self._append(pairs, TRANSACTIONAL, codec)

    @precondition(lambda self: self.open)
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        append(
            self.log,
            marker(committed=commit, producer_id=TRANSACTIONAL, timestamp=self.runtime.clock.ms),
            origin=Origin.COORDINATOR,
        )
        if commit:
            self.appended |= self.open
        self.open = {}

    @rule(ms=st.sampled_from((1, 500, 1000, 3000)))
    def wait(self, ms: int) -> None:
        self.runtime.clock.ms += ms

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(
        slots=st.sampled_from((6, 60, 1000)),
        chunk_bytes=st.sampled_from((1, 16384)),
        lag_ms=st.sampled_from((0, 0, 1000)),
    )
    def clean(self, slots: int, chunk_bytes: int, lag_ms: int) -> None:
        log = self.log
        log.update_config(config(**CONFIG, min_compaction_lag_ms=lag_ms))
        end = examine(log, self.runtime.clock.ms).first_uncleanable_offset
        before = [(meta, found) for meta, found in batches(log) if meta.base_offset >= end]
        dirty_before = log.cleaned_offset or 0
        clean(
            log,
            self.runtime,
            settings=SETTINGS._replace(dedupe_buffer_bytes=24 * slots, io_buffer_bytes=chunk_bytes),
            budget_bytes=1,
        )
        untouched = [(meta, found) for meta, found in batches(log) if meta.base_offset >= end]
        assert [m._replace(position=0) for m, _ in untouched] == [m._replace(position=0) for m, _ in before]
        assert [found for _, found in untouched] == [found for _, found in before]
        assert log.cleaned_offset is not None
        assert dirty_before <= log.cleaned_offset <= max(end, dirty_before)
        self._keys_are_unique_below(log.cleaned_offset)

    def _keys_are_unique_below(self, offset: int) -> None:
        keys = [
            r.key
            for meta, found in batches(self.log)
            if not meta.is_control
            for r in found
            if r.offset < offset
        ]
        aborted_too = len(keys) - len(set(keys))
        assert aborted_too == 0, "below the first dirty offset every key is there once"

    @rule(clean_stop=st.booleans(), compacted=st.booleans(), snapshots=st.booleans())
    def restart(self, clean_stop: bool, compacted: bool, snapshots: bool) -> None:
        high_watermark, cleaned = self.log.high_watermark, self.log.cleaned_offset
        self.log.close()
        if not snapshots:
            for path in Path(self.log.path).glob("*.snapshot"):
                path.unlink()
        changes = {**CONFIG, "cleanup_policy": ("compact",) if compacted else ("delete",), "retention_ms": -1}
        before = self.log.log_end_offset
        self.log = open_log(
            self.runtime,
            self.path,
            changes=changes,
            clean_shutdown=clean_stop,
            high_watermark=high_watermark,
            cleaned_offset=cleaned,
        )
        self.log.update_config(config(**CONFIG))
        assert self.log.log_end_offset == before

    @invariant()
    def readers_see_the_last_value_of_every_key(self) -> None:
        if not hasattr(self, "log"):
            return
        bound = self.log.last_stable_offset
        found = [record for record in committed(self.log) if record.offset < bound]
        assert [r.offset for r in found] == sorted({r.offset for r in found})
        for record in found:
            assert self.appended[record.offset] == (record.key, record.value), "nothing is invented"
        expected: dict[bytes, tuple[int, bytes | None]] = {}
        for offset, (key, value) in sorted(self.appended.items()):
            if offset < bound:
                expected[key] = (offset, value)
        seen = {record.key: (record.offset, record.value) for record in found}
        for key, (offset, value) in expected.items():
            if value is not None or key in seen:
                assert seen[key] == (offset, value)
        # A key that is missing was deleted.
        assert all(expected[key][1] is None for key in expected.keys() - seen.keys())


TestCompaction = CompactionMachine.TestCase
TestCompaction.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
