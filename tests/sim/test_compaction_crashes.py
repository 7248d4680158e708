"""Crashes in the middle of a compaction: at every system call of a cleaning and its swap, and of a node whose
cleaner runs all the time. Nothing is lost, nothing comes back, no file of a cleaning is left."""

import asyncio
import copy
import random
import uuid
from typing import Any

import pytest

from odradek.core.types import TopicPartition
from odradek.log.cleaning.cleaner import Cleaner
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.log import Isolation, Log
from odradek.log.manager import LogManager
from odradek.log.producers.rules import AppendOrigin
from odradek.records.batch import Record
from odradek.runtime.scope import Scope
from odradek.sim.world.cluster import CrashKind, NodeCrashed, SimHost
from odradek.sim.world.process import ProcessCrashed
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.volume import CrashModel, Volume
from odradek.sim.world.world import World
from tests.support.cleaning import clean, keyed
from tests.unit.log.support import NOW_MS, TP, VolumeRuntime, append, config, consume, marker

CONFIG: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 500,
    "index_interval_bytes": 100,
    "segment_index_bytes": 480,
    "delete_retention_ms": 1000,
    "file_delete_delay_ms": 0,
}
PATH = f"/data/{TP}"


def visible(log: Log) -> dict[int, Record]:
    """Every record that a reader finds, aborted ones included."""
    return {record.offset: record for record in consume(log, Isolation.HIGH_WATERMARK, 300)}


class Story:
    """A log on a disk whose power can be cut: filled, cleaned once, filled again, and now to be cleaned."""

    def __init__(self) -> None:
        self.volume = Volume()
        self.now_ms = NOW_MS
        self.appended: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.aborted: set[int] = set()
        self.sequence = 0
        self.boot()
        self.runtime.disk.makedirs("/data")
        self.log = self.open(0, None)
        self._fill()
        clean(self.log, self.runtime)
        self.now_ms = self.runtime.clock.ms = NOW_MS + 5000  # the horizon of the first tombstones has passed
        self._fill()
        self.log.flush()
        self.recovery_point, self.cleaned = self.log.recovery_point, self.log.cleaned_offset
        self.log.close()
        self.volume.sync_all()

    def again(self) -> "Story":
        """The same story up to here, on a disk of its own."""
        other = copy.copy(self)
        other.volume = copy.deepcopy(self.volume)
        other.boot()
        other.log = other.open(self.recovery_point, self.cleaned)
        other.volume.sync_all()
        return other

    def boot(self) -> None:
        self.runtime = VolumeRuntime(self.volume)
        self.runtime.clock.ms = self.now_ms
        self.process = self.runtime.process

    def open(self, recovery_point: int, cleaned: int | None) -> Log:
        log = Log.open(
            self.runtime,
            PATH,
            TP,
            None,
            config(**CONFIG),
            recovery_point=recovery_point,
            cleaned_offset=cleaned,
        )
        log.advance_high_watermark(log.log_end_offset)
        return log

    def _put(self, *pairs: tuple[bytes, bytes | None], transactional: bool = False) -> list[int]:
        fields: dict[str, Any] = {}
        if transactional:
            fields = {
                "producer_id": 7,
                "producer_epoch": 0,
                "base_sequence": self.sequence,
                "transactional": True,
            }
            self.sequence += len(pairs)
        (info,) = append(self.log, keyed(pairs, timestamp=self.now_ms, **fields))
        offsets = list(range(info.first_offset, info.last_offset + 1))
        self.appended.update(zip(offsets, pairs, strict=True))
        return offsets

    def _fill(self) -> None:
        for i in range(9):
            self._put((b"%d" % (i % 5), b"value-%d" % i), (b"gone-%d" % (i % 3), b"x" * 20))
        self._put(*((b"gone-%d" % i, None) for i in range(3)))
        self.aborted.update(self._put((b"0", b"aborted"), transactional=True))
        append(self.log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
        self._put((b"1", b"committed"), transactional=True)
        append(self.log, marker(committed=True), origin=AppendOrigin.COORDINATOR)
        self.log.roll()

    def newest(self) -> dict[bytes | None, tuple[int, bytes | None]]:
        found: dict[bytes | None, tuple[int, bytes | None]] = {}
        for offset, (key, value) in sorted(self.appended.items()):
            if offset not in self.aborted:
                found[key] = (offset, value)
        return found

    def check(self, log: Log) -> None:
        found = visible(log)
        assert {o: (r.key, r.value) for o, r in found.items()}.items() <= self.appended.items()
        seen: dict[bytes | None, tuple[int, bytes | None]] = {}
        for offset, record in sorted(found.items()):
            if offset not in self.aborted:
                seen[record.key] = (offset, record.value)
        for key, (offset, value) in self.newest().items():
            if value is not None:
                assert seen[key] == (offset, value), f"{key!r} was lost"
            else:
                assert seen.get(key, (offset, None)) == (offset, None), f"{key!r} has come back"
        assert log.log_end_offset == max(self.appended) + 2, "and the marker after it"
        entry = log.producers.entries[7]
        assert (entry.last_sequence, log.last_stable_offset) == (self.sequence - 1, log.log_end_offset)

    def leftovers(self) -> list[str]:
        return [n for n in self.runtime.disk.listdir(PATH) if n.endswith((".cleaned", ".swap", ".deleted"))]


def effects_of_a_cleaning(story: Story) -> int:
    story.process.fuse = 1 << 30
    clean(story.log, story.runtime)
    assert story.process.fuse is not None
    effects = (1 << 30) - story.process.fuse
    story.check(story.log)
    return effects


@pytest.mark.parametrize(
    "model",
    [
        None,
        CrashModel(keep_all=0, lose_all=1, zero_tail=0, garbage_tail=0),
        CrashModel(),
    ],
    ids=["killed", "lost", "torn"],
)
def test_a_crash_at_every_system_call_of_a_cleaning_loses_and_revives_nothing(
    model: CrashModel | None,
) -> None:
    told = Story()
    effects = effects_of_a_cleaning(told.again())
    assert effects > 40
    swapped = 0
    for fuse in range(effects):
        story = told.again()
        before = visible(story.log)

        def crash(story: Story = story, seed: int = fuse) -> None:
            story.process.alive = False
            if model is not None:
                story.volume.crash(random.Random(seed), model)

        story.process.on_burnt = crash
        story.process.fuse = fuse
        with pytest.raises(ProcessCrashed):
            clean(story.log, story.runtime)
        story.boot()
        log = story.log = story.open(story.recovery_point, story.cleaned)
        assert story.leftovers() == []
        story.check(log)
        swapped += visible(log) != before
        # What was begun can be finished, and again nothing is lost; nor by the next restart.
        clean(log, story.runtime)
        story.check(log)
        after = visible(log)
        log.close()
        story.boot()
        again = story.open(log.log_end_offset, log.cleaned_offset)
        assert visible(again) == after
        story.check(again)
    assert 0 < swapped < effects, "some crashes came before the swap, some after it"


TOPIC = TopicPartition("compacted", 0)
CLEANER = CleanerSettings(
    enabled=True,
    threads=1,
    dedupe_buffer_bytes=24 * 200,
    load_factor=0.9,
    io_buffer_bytes=8192,
    max_bytes_per_second=2e5,
    backoff_ms=100,
)


class CompactingNode:
    """A log of few keys, written to and cleaned all the time."""

    def __init__(self, runtime: SimRuntime, data_dir: str, history: "Acknowledged") -> None:
        self._runtime = runtime
        self._history = history
        self._scope = Scope()
        self.manager = LogManager(runtime, [data_dir])
        self.cleaner = Cleaner(runtime, self.manager, CLEANER)

    async def start(self) -> None:
        self.manager.open()
        changes = {**CONFIG, "segment_bytes": 4000, "min_cleanable_dirty_ratio": 0.2, "flush_messages": 1}
        self.manager.load(lambda topic: config(**changes))
        log = self.manager.get_or_create(TOPIC, uuid.UUID(int=7), config(**changes))
        log.advance_high_watermark(log.log_end_offset)
        self._history.survived(log)
        self.cleaner.start()
        self._scope.spawn(self._write(log))
        self._scope.spawn(self._tick())

    async def stop(self) -> None:
        await self._scope.close()
        await self.cleaner.close()
        await self.manager.close()

    async def _write(self, log: Log) -> None:
        rng = self._runtime.rng
        while True:
            await asyncio.sleep(rng.expovariate(50))
            pairs = [
                (b"%d" % rng.randrange(20), None if rng.random() < 0.2 else rng.randbytes(rng.randrange(80)))
                for _ in range(rng.choice((1, 3)))
            ]
            offset = log.log_end_offset
            self._history.sent.update((offset + i, pair) for i, pair in enumerate(pairs))
            append(log, keyed(pairs, timestamp=self._runtime.clock.now_ms(), codec=rng.choice((0, 0, 3))))
            while log.settled_offset < offset + len(pairs):
                await asyncio.sleep(0.001)
            self._history.acknowledged.update((offset + i, pair) for i, pair in enumerate(pairs))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.3)
            self.manager.tick_flush()
            self.manager.checkpoint_recovery_points()
            await self.manager.tick_deletes()


class Acknowledged:
    """What was appended and flushed: a value of a key that must be there, or have been replaced."""

    def __init__(self) -> None:
        self.sent: dict[int, tuple[bytes, bytes | None]] = {}
        self.acknowledged: dict[int, tuple[bytes, bytes | None]] = {}
        self.findings: list[str] = []
        self.gaps = 0

    def survived(self, log: Log) -> None:
        found = {offset: (r.key, r.value) for offset, r in visible(log).items()}
        if not found.items() <= self.sent.items():
            self.findings.append("a record was invented")
        # What was sent and never acknowledged may be there; what is not is gone for good.
        end = log.log_end_offset
        self.sent = {offset: pair for offset, pair in self.sent.items() if offset < end}
        lost = [offset for offset in self.acknowledged if offset >= end]
        if lost:
            self.findings.append(f"acknowledged records from {min(lost)} on are lost")
        newest: dict[bytes, tuple[int, bytes | None]] = {}
        for offset, (key, value) in sorted(self.sent.items()):
            newest[key] = (offset, value)
        for key, (offset, value) in newest.items():
            if value is not None and offset not in found and offset in self.acknowledged:
                self.findings.append(f"the newest value of {key!r} at {offset} is lost")
            for at, (other, was) in found.items():
                if other == key and at > offset:
                    self.findings.append(f"{key!r} has {was!r} at {at}, after its newest value")
            if value is None and offset not in found:
                revived = [at for at, (other, was) in found.items() if other == key and was is not None]
                if revived:
                    self.findings.append(f"{key!r} was deleted at {offset} and is back at {revived}")
        self.acknowledged.update((o, self.sent[o]) for o in found if o in self.sent)
        self.gaps += end - len(found)


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_compacts_all_the_time_keeps_what_it_acknowledged(seed: int) -> None:
    world = World(seed)
    history = Acknowledged()
    host = SimHost(world, "node", lambda runtime, path: CompactingNode(runtime, path, history))
    host.faults.short_write = 0.02
    rng = world.rng_for("plan")
    cleanings = 0

    async def main() -> None:
        nonlocal cleanings
        while host.lives < 25 and not history.findings:
            fuse = (rng.randrange(80), rng.choice(list(CrashKind))) if rng.random() < 0.3 else None
            try:
                await host.start(fuse)
            except NodeCrashed:
                continue
            host.call_off_crash()
            node = host.node
            assert isinstance(node, CompactingNode)
            await asyncio.sleep(rng.uniform(0, 8))
            kind = rng.choice((CrashKind.KILL, CrashKind.POWER, None))
            if kind is None:
                await host.stop()
            else:
                host.crash_after(rng.randrange(100), kind)
                await host.dead()
            cleanings += node.cleaner.cleanings
        assert host.leaks == []

    world.run(main())
    assert history.findings == []
    assert world.loop.unhandled == []
    assert cleanings > 10
    assert history.gaps > 100, "records were really taken out"
