"""What is made of transactions: timelines, their pictures, who hangs, how far groups are behind."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.cli.requests.lag import eta
from odradek.cli.requests.scan import ReadLimit, ReadLimitError
from odradek.cli.requests.stuck import Held
from odradek.cli.requests.timeline import WIDTH, Event, What, draw
from odradek.cli.requests.txn_admin import ActiveProducer, Described, is_hanging
from odradek.cli.requests.txn_history import Change, coordinator_events, ended_since, last_transactions
from odradek.cli.terminal.output import Table, columns, render_table
from odradek.cli.terminal.times import Seconds, seconds
from odradek.core.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)


def change(
    time_ms: int, state: int, epoch: int, *partitions: int, version: int = 2, start: int = -1
) -> Change:
    topics = [SimpleNamespace(topic="t", partition_ids=list(partitions))] if partitions else None
    value = SimpleNamespace(
        transaction_status=state, producer_id=7, producer_epoch=epoch, transaction_partitions=topics,
        transaction_start_timestamp_ms=start, client_transaction_version=version,
    )  # fmt: skip
    return Change(time_ms, value)


def told(changes: list[Change]) -> list[tuple[int, str, int | None]]:
    return [
        (e.time_ms, str(e.what), None if e.tp is None else e.tp.partition)
        for e in coordinator_events(changes)
    ]


def test_the_coordinators_records_become_events() -> None:
    changes = [
        change(1, EMPTY, 0),
        change(5, ONGOING, 0, 0, start=4),
        change(6, ONGOING, 0, 0, 1, start=4),
        change(8, PREPARE_COMMIT, 1, 0, 1),
        change(9, COMPLETE_COMMIT, 1),
        Change(20, None),
    ]
    assert told(changes) == [
        (1, "init", None), (4, "begin", None), (5, "partition added", 0), (6, "partition added", 1),
        (8, "prepare commit", None), (9, "committed", None), (20, "expired", None),
    ]  # fmt: skip


def test_an_abort_by_another_epoch_than_the_producers_is_a_fence() -> None:
    """With an epoch per transaction every end raises it; below that only who fences does."""
    life = [change(5, ONGOING, 3, 0, version=1, start=5)]
    assert told([*life, change(9, PREPARE_ABORT, 4, 0, version=1)])[-2:] == [
        (9, "fenced", None), (9, "prepare abort", None)
    ]  # fmt: skip
    assert "fenced" not in str(told([*life, change(9, PREPARE_ABORT, 3, 0, version=1)]))
    assert "fenced" not in str(told([change(5, ONGOING, 3, 0, start=5), change(9, PREPARE_ABORT, 4, 0)]))


def event(time_ms: int, what: What, tp: TopicPartition | None = None) -> Event:
    return Event(time_ms, what, tp, None, None, 7, 0)


def test_only_the_last_transactions_are_shown() -> None:
    events = [event(t, w) for t in (0, 10, 20) for w in (What.BEGIN, What.COMMITTED)]
    assert [e.time_ms for e in last_transactions(events, 2)] == [10, 10, 20, 20]
    assert last_transactions(events, 3) == events
    assert last_transactions(events[:1], 5) == events[:1]
    batches = [
        event(1, What.BATCHES, T0), event(2, What.COMMIT_MARKER, T0),
        event(3, What.BATCHES, T0), event(9, What.ABORT_MARKER, T0), event(11, What.BATCHES, T0),
    ]  # fmt: skip
    assert [e.time_ms for e in ended_since(batches, 5)] == [3, 9, 11]


def test_the_picture_has_a_lane_for_each_place_and_a_line_while_something_is_open() -> None:
    events = [
        event(1_000, What.INIT), event(1_000, What.BEGIN), event(1_000, What.BATCHES, T0),
        event(1_630, What.PREPARE_COMMIT), event(1_630, What.COMMIT_MARKER, T0), event(1_630, What.COMMITTED),
        event(1_630, What.BATCHES, T1),
    ]  # fmt: skip
    coordinator, t0, t1, axis, legend = draw(events).splitlines()
    assert coordinator == "coordinator  i[" + "─" * (WIDTH - 3) + "]"
    assert t0 == "t-0          ▪" + "─" * (WIDTH - 2) + "C"
    assert t1 == "t-1          " + " " * (WIDTH - 1) + "▪"
    assert axis == " " * 13 + "0" + "630 ms".rjust(WIDTH - 1)
    assert all(mark in legend for mark in "i[+▪cCaA]!x")


def test_a_moment_is_drawn_too() -> None:
    assert draw([event(5, What.INIT)]).splitlines()[0] == "coordinator  i"


OPEN = ActiveProducer(T0, 7, 1, 0, 1_000, 0, 5)


def owner(state: str, *partitions: TopicPartition, producer_id: int = 7) -> Described:
    return Described("x", state, producer_id, 1, 1, 60_000, 900, list(partitions))


@pytest.mark.parametrize(
    ("producer", "known", "hangs"),
    [
        (OPEN._replace(start_offset=None), None, False),
        (OPEN, None, True),
        (OPEN, owner("Ongoing", T0), False),
        (OPEN, owner("Ongoing", T1), True),
        (OPEN, owner("PrepareAbort", T0), False),
        (OPEN, owner("CompleteAbort"), True),
        (OPEN, owner("Empty"), True),
        (OPEN, owner("Ongoing", T0, producer_id=8), True),
    ],
)
def test_what_no_coordinator_will_end_hangs(producer: Any, known: Any, hangs: bool) -> None:
    assert is_hanging(producer, known) is hangs


def test_the_command_that_ends_it() -> None:
    held = Held(T0, 5, 9, OPEN, owner("Ongoing", T0), [])
    assert held.next_command() == "odradek txn abort x"
    assert held.open_since_ms() == 900
    hanging = held._replace(owner=owner("CompleteCommit"))
    assert hanging.next_command() == "odradek txn abort -t t -p 0 --start-offset 5"
    assert hanging.open_since_ms() == 1_000


def test_the_eta_is_how_long_it_takes_at_the_pace_of_late() -> None:
    assert eta(100, elapsed_ms=1_000, read=60, written=10) == 2.0
    assert eta(100, elapsed_ms=1_000, read=10, written=10) is None
    assert eta(100, elapsed_ms=1_000, read=0, written=5) is None
    assert eta(100, elapsed_ms=0, read=5, written=0) is None


def test_durations_are_numbers_for_machines_and_words_for_people() -> None:
    table = Table(columns("AGE#"), [[seconds(245_000)], [seconds(None)], [seconds(-5)]])
    assert render_table(table, "text") == "  AGE\n4m05s\n    -\n 0 ms\n"
    assert render_table(table, "csv") == "age\n245.0\n\n0.0\n"
    assert render_table(table, "jsonl") == '{"age": 245.0}\n{"age": null}\n{"age": 0.0}\n'
    assert render_table(table, "{age}") == "4m05s\n-\n0 ms\n"
    assert Seconds(1.5) == 1.5


def test_what_may_be_read_ends() -> None:
    limit = ReadLimit(10)
    limit.take(10)
    with pytest.raises(ReadLimitError):
        limit.take(1)
