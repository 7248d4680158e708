"""Bugs with power losses that the state machine in tests/property has found, each as a short test."""

import errno
import random

import pytest

from odradek.core.errors import StorageError
from odradek.log.cleaning.cleaned_segment import CleanedSegment
from odradek.log.log import Isolation, Log
from odradek.log.lookup import MAX_TIMESTAMP, TimestampOffset
from odradek.log.producers.rules import AppendOrigin
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.volume import CrashModel, Volume
from tests.unit.log.support import (
    NOW_MS,
    TP,
    VolumeRuntime,
    append,
    batch,
    config,
    idempotent,
    marker,
    offsets,
    records,
    transactional,
)

LOSE_ALL = CrashModel(keep_all=0, lose_all=1, zero_tail=0, garbage_tail=0)
KEEP_ALL = CrashModel(keep_all=1, lose_all=0, zero_tail=0, garbage_tail=0)
PATH = "/data/orders-0"


class Machine:
    """A host whose power can be cut."""

    def __init__(self) -> None:
        self.volume = Volume()
        self._boot()
        self.runtime.disk.makedirs("/data")
        self.volume.sync_all()

    def _boot(self) -> None:
        self.runtime = VolumeRuntime(self.volume)

    def open(self, *, clean: bool = False, log_start_offset: int = 0, recovery_point: int = 0) -> Log:
        log = Log.open(
            self.runtime,
            PATH,
            TP,
            None,
            config(index_interval_bytes=50, segment_index_bytes=480),
            clean_shutdown=clean,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
        )
        log.advance_high_watermark(log.log_end_offset)
        return log

    def lose_power(self, model: CrashModel = LOSE_ALL, seed: int = 1) -> None:
        self.runtime.process.alive = False
        self.volume.crash(random.Random(seed), model)
        self._boot()

    def kill(self) -> None:
        self.runtime.process.alive = False
        self._boot()


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_flush_does_not_rely_on_one_that_is_still_under_way(machine: Machine) -> None:
    log = machine.open()
    append(log, batch(), epoch=3)
    log.roll()
    under_way = log.begin_flush()
    append(log, batch(), epoch=4)
    log.flush()
    assert log.recovery_point == 2
    machine.lose_power()
    log = machine.open(recovery_point=2)
    assert offsets(log) == [0, 1]
    assert log.epochs.entries == [(3, 0), (4, 1)]
    assert under_way is not None


def test_records_that_a_truncation_dropped_do_not_come_back(machine: Machine) -> None:
    log = machine.open()
    append(log, *(batch() for _ in range(4)))
    log.flush()
    log.truncate_to(1)
    append(log, batch())
    machine.lose_power()
    assert offsets(machine.open()) == [0]


def test_deleted_records_do_not_hide_that_the_others_are_not_durable(machine: Machine) -> None:
    log = machine.open()
    append(log, *(batch() for _ in range(3)))
    log.increment_log_start_offset(3)
    log.flush()
    machine.lose_power()
    assert machine.open(log_start_offset=3).log_end_offset == 3


def test_indexes_of_a_segment_that_was_flushed_while_active_are_durable_once_it_is_sealed(
    machine: Machine,
) -> None:
    log = machine.open()
    append(log, transactional(0, 2))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    log.flush()
    log.roll()
    append(log, batch())
    log.flush()
    machine.lose_power()
    log = machine.open(recovery_point=4)
    assert log.segments.first.txn_index.entries == [(7, 0, 2, 3)]
    assert log.segments.first.time_index.entries == 1


def test_indexes_are_durable_after_a_clean_stop_of_a_log_that_was_flushed_before(machine: Machine) -> None:
    log = machine.open()
    append(log, *(batch() for _ in range(9)))
    log.flush()
    log.close()
    machine.lose_power()
    log = machine.open(clean=True, recovery_point=9)
    assert log.segments.active.offset_index.entries > 0
    assert offsets(log) == list(range(9))


def test_indexes_of_a_segment_that_ended_before_a_kill_are_durable_after_the_next_clean_stop(
    machine: Machine,
) -> None:
    """Its records were flushed before it ended: after the kill only its indexes are not durable."""
    log = machine.open()
    for i in range(6):
        append(log, batch(timestamp=NOW_MS + i))
    log.flush()
    log.roll()
    machine.kill()
    log = machine.open(recovery_point=6)
    append(log, batch(timestamp=NOW_MS + 6))
    log.close()
    machine.lose_power()
    log = machine.open(clean=True, recovery_point=7)
    found = machine.volume.find_file(f"{PATH}/00000000000000000000.timeindex").data
    assert found.read(found.size - 12, 12) == (NOW_MS + 5).to_bytes(8, "big") + (5).to_bytes(4, "big")
    assert log.segments.first.time_index.last_entry == (NOW_MS + 5, 5)


def test_a_transaction_whose_marker_was_deleted_with_its_segment_is_not_open_for_ever(
    machine: Machine,
) -> None:
    log = machine.open()
    append(log, transactional(0))
    log.roller.take_snapshot(1)  # as a stop does, with the transaction open
    append(log, marker(committed=True), origin=AppendOrigin.COORDINATOR)
    log.roll()
    append(log, batch())
    log.increment_log_start_offset(2)
    log.retain(0)
    log.flush()
    machine.lose_power()
    log = machine.open(log_start_offset=0)
    assert log.log_start_offset == 2
    assert log.last_stable_offset == log.high_watermark == 3


def test_an_index_that_came_back_for_an_empty_segment_is_not_believed(machine: Machine) -> None:
    log = machine.open()
    append(log, batch())
    log.roll()
    append(log, batch(timestamp=1_800_000_000_000))
    log.close()
    log = machine.open(clean=True)
    log.truncate_to(1)
    log.close()
    machine.lose_power()
    log = machine.open(clean=True, recovery_point=1)
    found = log.offset_for_timestamp(MAX_TIMESTAMP)
    assert isinstance(found, TimestampOffset)
    assert found.offset == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_transaction_index_that_recovery_made_anew_is_durable_after_a_clean_stop(
    machine: Machine, seed: int
) -> None:
    log = machine.open()
    append(log, transactional(0))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    log.flush()
    machine.kill()
    log = machine.open(recovery_point=2)
    log.roll()
    log.close()
    machine.lose_power(seed=seed)
    log = machine.open(clean=True, recovery_point=2)
    assert log.segments.first.txn_index.entries == [(7, 0, 1, 2)]
    assert log.read(0, 1000, Isolation.TXN_COMMITTED).aborted == [(7, 0)]


def test_aborted_transactions_that_a_truncation_dropped_do_not_come_back(machine: Machine) -> None:
    log = machine.open()
    append(log, transactional(0))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    log.close()
    log = machine.open(clean=True)
    log.truncate_to(0)
    log.close()
    machine.lose_power()
    log = machine.open(clean=True)
    append(log, transactional(0))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    assert log.segments.active.txn_index.entries == [(7, 0, 1, 2)]


def test_producers_are_known_after_a_kill_and_after_power_loss(machine: Machine) -> None:
    log = machine.open()
    append(log, idempotent(0, 2), idempotent(2))
    machine.kill()
    log = machine.open()
    (again,) = append(log, idempotent(2))
    assert again.duplicate
    log.flush()
    machine.lose_power(KEEP_ALL)
    (again,) = append(machine.open(recovery_point=3), idempotent(2))
    assert again.duplicate


def cleaned(machine: Machine, log: Log) -> CleanedSegment:
    """What a cleaning of the first segment has made ready and the log has not taken over yet."""
    log.compaction.being_cleaned = True
    ready = CleanedSegment(machine.runtime.disk, log.path, 0, 4096, 4096)
    ready.write(log.segments.first.slice(0, log.segments.first.size).read())
    ready.make_ready(0)
    return ready


def two_segments(machine: Machine) -> Log:
    log = machine.open()
    append(log, *(batch() for _ in range(4)))
    log.roll()
    append(log, batch())
    log.flush()
    return log


def test_a_cleaned_segment_that_was_given_up_does_not_come_back(machine: Machine) -> None:
    cleaned(machine, two_segments(machine)).discard()
    machine.lose_power()
    assert not [name for name in machine.runtime.disk.listdir(PATH) if name.endswith(".swap")]


@pytest.mark.parametrize("offset", [2, 0])
def test_a_cleaned_segment_does_not_replace_what_came_after_a_truncation(
    machine: Machine, offset: int
) -> None:
    log = two_segments(machine)
    cleaned(machine, log)
    log.truncate_to(offset)
    append(log, batch(value=b"new"))
    log.flush()
    machine.lose_power()
    log = machine.open()
    assert log.log_end_offset == offset + 1
    assert records(log)[-1].value == b"new"


def test_a_transaction_index_that_lags_behind_its_marker_catches_up(machine: Machine) -> None:
    """The marker was written when the index refused its entry: the log is offline, and it stays written."""
    log = machine.open()
    append(log, transactional(0, 2))
    machine.runtime.faults.rules.append(DiskFault(errno.EIO, ["pwrite"], "*.txnindex"))
    with pytest.raises(StorageError, match=r"txnindex"):
        append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    with pytest.raises(StorageError):
        log.read(0, 1000, Isolation.TXN_COMMITTED)
    machine.kill()
    log = machine.open()
    assert log.log_end_offset == 3
    assert log.segments.active.txn_index.entries == [(7, 0, 2, 3)]
    assert log.read(0, 1000, Isolation.TXN_COMMITTED).aborted == [(7, 0)]
    assert log.last_stable_offset == 3
