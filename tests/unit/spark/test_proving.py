"""A proof's rules: what covers the input once, and which transactions may be in the output."""

import json

import pytest

from odradek.core.types import TopicPartition
from odradek.spark.ledger import Decision, Participant, Range, Stream
from odradek.spark.proving.ranges import check_overlaps, check_ranges, decisions_between, once_each
from odradek.spark.proving.rows import check_by
from odradek.spark.proving.transactions import NO_TRANSACTION, Judge, Judged, Producer, Written, merge
from odradek.spark.proving.violations import DUPLICATE, LOST, UNKNOWN, Violation, total

Q, R = Stream("q", "sink"), Stream("r", "sink")
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
B0, B1 = TopicPartition("b", 0), TopicPartition("b", 1)


def line(**offsets: int) -> str:
    """line(p0=5, p1=7) of the topic a."""
    return json.dumps({"a": {name[1:]: offset for name, offset in offsets.items()}, "@cluster": "c"})


def decision(batch: int, start: str | None, end: str | None, *participants: Participant) -> Decision:
    range_ = Range((start,) if start else (), (end,) if end else ())
    return Decision(batch, "run", "", range_, participants, 0)


def wrote(producer_id: int, epoch: int, rows: int, *partitions: TopicPartition) -> Participant:
    places = tuple((tp.topic, tp.partition) for tp in partitions or (B0,))
    return Participant(f"odradek.q.sink.run.w{producer_id}.0", producer_id, epoch, rows, places)


GOOD = [
    decision(0, None, line(p0=10, p1=5), wrote(1, 0, 15)),
    decision(1, line(p0=10, p1=5), line(p0=20, p1=5), wrote(1, 1, 10)),
    decision(2, line(p0=20, p1=5), line(p0=20, p1=9), wrote(1, 2, 4)),
]


def test_batches_that_follow_each_other_cover_the_input() -> None:
    covered = check_ranges(Q, GOOD, "a")
    assert covered.violations == []
    assert covered.ends == {A0: 20, A1: 9}
    assert covered.starts == {}
    later = check_ranges(Q, GOOD[1:], "a")
    assert later.starts == {A0: 10, A1: 5}


@pytest.mark.parametrize(
    ("start", "kind", "amount", "place"),
    [
        (line(p0=23, p1=5), LOST, 3, "a-0 offsets 20 to 22"),
        (line(p0=18, p1=5), DUPLICATE, 2, "a-0 offsets 18 to 19"),
    ],
)
def test_gaps_and_overlaps_are_named(start: str, kind: str, amount: int, place: str) -> None:
    broken = [*GOOD[:2], decision(2, start, line(p0=30, p1=5), wrote(1, 2, 1))]
    (found,) = check_ranges(Q, broken, "a").violations
    assert (found.kind, found.amount, found.place, found.batch) == (kind, amount, place, 2)


def test_a_batch_without_a_decision_is_missed() -> None:
    kinds = [(v.kind, v.amount) for v in check_ranges(Q, [GOOD[0], GOOD[2]], "a").violations]
    assert kinds == [(LOST, 0), (LOST, 10)]


def test_a_range_that_nobody_knows_is_not_proven() -> None:
    (found,) = check_ranges(Q, [*GOOD, decision(3, None, None, wrote(1, 3, 1))], "a").violations
    assert found.kind == UNKNOWN
    assert check_ranges(Q, [*GOOD, decision(3, None, None)], "a").violations == []


def test_partitions_may_appear_but_not_vanish() -> None:
    grown = [*GOOD, decision(3, line(p0=20, p1=9), line(p0=20, p1=9, p2=4), wrote(1, 3, 4))]
    assert check_ranges(Q, grown, "a").violations == []
    (found,) = check_ranges(Q, [*GOOD, decision(3, line(p0=20, p1=9), line(p0=25))], "a").violations
    assert "left a-1 out" in found.told


def test_a_decision_told_again_is_one_and_another_of_the_same_batch_is_not() -> None:
    again = GOOD[1]._replace(run="other")
    assert once_each(Q, [*GOOD, again]) == (GOOD, [])
    other = GOOD[1]._replace(participants=(wrote(7, 0, 10),))
    _, (found,) = once_each(Q, [*GOOD, other])
    assert (found.kind, found.amount, found.batch) == (DUPLICATE, 10, 1)


def test_only_streams_between_the_two_topics_count() -> None:
    elsewhere = decision(0, None, line(p0=3), wrote(5, 0, 1, TopicPartition("c", 0)))
    history = [(Q, GOOD[1]), (R, elsewhere), (Q, GOOD[0]), (Q, GOOD[2])]
    assert decisions_between(history, "a", "b") == {Q: GOOD}
    assert decisions_between(history, "x", "b") == {}


def test_a_query_that_began_anew_has_read_the_same_again() -> None:
    both = {stream: check_ranges(stream, GOOD, "a") for stream in (Q, R)}
    found = check_overlaps(both)
    assert [(v.kind, v.amount, v.place) for v in found] == [
        (DUPLICATE, 10, "a-0 offsets 10 to 19"),
        (DUPLICATE, 4, "a-1 offsets 5 to 8"),
    ]
    assert check_overlaps({Q: both[Q]}) == []


# --- transactions ----------------------------------------------------------------------------------------

WRITTEN = [
    Written(B0, Producer(1, 0), 15, 0, 14),
    Written(B0, Producer(1, 1), 10, 16, 25),
    Written(B0, Producer(1, 2), 4, 27, 30),
]


def judged(
    written: list[Written],
    decisions: list[Decision] = GOOD,
    *,
    unfinished: set[str] | None = None,
    starts: dict[TopicPartition, int] | None = None,
    own: dict[int, str] | None = None,
) -> Judged:
    named = {Producer(p.producer_id, p.producer_epoch) for d in decisions for p in d.participants}
    judge = Judge("b", written, named, unfinished or set(), starts or {})
    judge.judge(Q, decisions, own or {})
    return judge.result()


def test_transactions_that_decisions_name_are_whole() -> None:
    found = judged([*WRITTEN, Written(B1, NO_TRANSACTION, 7, 0, 6), Written(B1, Producer(9, 0), 2, 7, 8)])
    assert found.violations == []
    assert (found.outputs, found.transactions, found.other_records) == (29, 3, 9)


def test_records_that_are_missing_are_lost() -> None:
    (found,) = judged([WRITTEN[0], WRITTEN[1]._replace(records=6), WRITTEN[2]], starts={B0: 20}).violations
    assert (found.kind, found.amount, found.batch) == (LOST, 4, 1)
    assert "b-0 begins at offset 20" in found.told
    (found,) = judged([WRITTEN[0], WRITTEN[2]]).violations
    assert (found.kind, found.amount) == (LOST, 10)
    (found,) = judged([WRITTEN[0], WRITTEN[1]._replace(records=12), WRITTEN[2]]).violations
    assert (found.kind, found.amount) == (DUPLICATE, 2)


def test_a_transaction_that_no_decision_names_is_a_duplicate() -> None:
    (found,) = judged([*WRITTEN, Written(B1, Producer(1, 7), 3, 40, 42)]).violations
    assert (found.kind, found.amount, found.place) == (DUPLICATE, 3, "b-1 offsets 40 to 42")
    foreign = Written(B1, Producer(8, 0), 3, 40, 42)
    assert judged([*WRITTEN, foreign]).violations == []
    (found,) = judged([*WRITTEN, foreign], own={8: "odradek.q.sink.run.x.0"}).violations
    assert "odradek.q.sink.run.x.0" in found.told


def test_what_is_older_than_the_history_is_not_judged() -> None:
    assert judged(WRITTEN, GOOD[1:]).violations == []
    (found,) = judged([*WRITTEN, Written(B0, Producer(1, 9), 1, 40, 40)], GOOD[1:]).violations
    assert found.kind == DUPLICATE


def test_a_decision_that_is_being_carried_out_is_waited_for() -> None:
    last = GOOD[2].participants[0].transactional_id
    found = judged(WRITTEN[:2], unfinished={last})
    assert (found.violations, found.unfinished) == ([], 1)
    (violation,) = judged([WRITTEN[0], WRITTEN[2]], unfinished={last}).violations
    assert violation.batch == 1, "only of the last batch"


def test_pieces_of_a_partition_are_put_together() -> None:
    pieces = [Written(B0, Producer(1, 0), 3, 10, 12), Written(B0, Producer(1, 0), 2, 4, 5), WRITTEN[1]]
    assert merge(pieces) == [Written(B0, Producer(1, 0), 5, 4, 12), WRITTEN[1]]


def test_checks_that_see_the_same_records_are_not_added_up() -> None:
    found = [
        Violation("transactions", DUPLICATE, 3, None, None, "", ""),
        Violation("transactions", DUPLICATE, 2, None, None, "", ""),
        Violation("rows", DUPLICATE, 4, None, None, "", ""),
        Violation("rows", LOST, 1, None, None, "", ""),
    ]
    assert (total(found, DUPLICATE), total(found, LOST)) == (5, 1)


def test_what_a_record_is_known_by() -> None:
    assert check_by("header:id") == "header:id"
    for wrong in ("header:", "offset", ""):
        with pytest.raises(ValueError, match="one of key"):
            check_by(wrong)
