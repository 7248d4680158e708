"""A proof's rules: what covers the input once, and which transactions may be in the output."""

import json

import pytest

from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.spark.ledger.ledger import Decision, Participant, Range, Stream
from odradek.spark.proving.overlaps import check_bounds, check_known, check_overlaps
from odradek.spark.proving.ranges import check_ranges, once_each, writers_of
from odradek.spark.proving.rows import check_by
from odradek.spark.proving.transactions import NO_TRANSACTION, Judge, Judged, Written, merge
from odradek.spark.proving.violations import DUPLICATE, FOREIGN, LOST, UNKNOWN, Violation, total

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
    assert "left out a-1" in found.told


def test_a_decision_told_again_is_one_and_another_of_the_same_batch_is_not() -> None:
    again = GOOD[1]._replace(run="other")
    assert once_each(Q, [*GOOD, again]) == (GOOD, [])
    other = GOOD[1]._replace(participants=(wrote(7, 0, 10),))
    _, (found,) = once_each(Q, [*GOOD, other])
    assert (found.kind, found.amount, found.batch) == (DUPLICATE, 10, 1)


def test_only_streams_between_the_two_topics_count() -> None:
    elsewhere = decision(0, None, line(p0=3), wrote(5, 0, 1, TopicPartition("c", 0)))
    history = [(Q, GOOD[1]), (R, elsewhere), (Q, GOOD[0]), (Q, GOOD[2])]
    assert writers_of(history, "a", "b").between == {Q: GOOD}
    assert writers_of(history, "x", "b").between == {}
    assert writers_of(history, "x", "b").elsewhere == {Q: GOOD}
    assert writers_of(history, "a", "c").between == {R: [elsewhere]}


def test_a_query_that_began_anew_has_read_the_same_again() -> None:
    both = {stream: check_ranges(stream, GOOD, "a") for stream in (Q, R)}
    found = check_overlaps(both)
    assert [(v.kind, v.amount, v.place) for v in found] == [
        (DUPLICATE, 10, "a-0 offsets 10 to 19"),
        (UNKNOWN, 0, "a-0"),
        (DUPLICATE, 4, "a-1 offsets 5 to 8"),
        (UNKNOWN, 0, "a-1"),
    ]
    assert check_overlaps({Q: both[Q]}) == []


def first(end: dict[str, int], starts: dict[str, int], *participants: Participant) -> Decision:
    """Batch 0, with where it begins."""
    value = {"a": end, "@cluster": "c", "@starts": {"a": starts}}
    return decision(0, None, json.dumps(value), *participants)


def test_first_batches_are_compared_too() -> None:
    whole = first({"0": 10, "1": 5}, {"0": 0, "1": 0}, wrote(1, 0, 15))
    covered = check_ranges(Q, [whole], "a")
    assert covered.starts == {A0: 0, A1: 0}
    found = check_overlaps({Q: covered, R: check_ranges(R, [whole], "a")})
    assert [(v.kind, v.amount, v.place) for v in found] == [
        (DUPLICATE, 10, "a-0 offsets 0 to 9"),
        (DUPLICATE, 5, "a-1 offsets 0 to 4"),
    ]
    assert str(Q) in found[0].told and str(R) in found[0].told
    later = check_ranges(R, [first({"0": 25, "1": 9}, {"0": 10, "1": 5})], "a")
    assert check_overlaps({Q: covered, R: later}) == [], "it began where the other one ended"
    unknown = check_ranges(R, [decision(0, None, line(p0=25))], "a")
    (vague,) = check_overlaps({Q: covered, R: unknown})
    assert vague.kind == UNKNOWN
    assert "the start of batch 0 of r/sink in a-0 is not recorded" in vague.told


def test_streams_that_overlap_in_many_batches_are_told_once_for_a_partition() -> None:
    def in_steps(step: int) -> list[Decision]:
        made = [first({"0": step}, {"0": 0})]
        for batch in range(1, 100 // step):
            made.append(decision(batch, line(p0=batch * step), line(p0=(batch + 1) * step)))
        return made

    covered = {Stream(f"q{n}", "sink"): check_ranges(Q, in_steps(n), "a") for n in (10, 20, 25)}
    found = check_overlaps(covered)
    assert [(v.kind, v.amount) for v in found] == [(DUPLICATE, 100)] * 2, "three copies, two too many"
    assert "batches 0 to 4 of q20/sink, and in batches 0 to 9 of q10/sink" in found[0].told


def test_a_query_that_reads_a_topic_twice_does_not_overlap_with_itself() -> None:
    end = json.dumps({"a": {"0": 10}, "@cluster": "c", "@starts": {"a": {"0": 0}}})
    joined = Decision(0, "run", "", Range((), (end, end)), (), 0)
    assert check_overlaps({Q: check_ranges(Q, [joined], "a")}) == []


def test_inputs_above_what_the_topic_holds_are_found() -> None:
    one = check_ranges(Q, [first({"0": 10}, {"0": 0})], "a")
    assert check_bounds({Q: one}, {A0: 0}, {A0: 10}) == []
    assert check_bounds({Q: one}, {A0: 8}, {A0: 10}) == [], "retention has taken what was read"
    (beyond,) = check_bounds({Q: one}, {A0: 0}, {A0: 7})
    assert beyond.kind == UNKNOWN
    assert (beyond.amount, beyond.place) == (3, "a-0")
    vague = [check_ranges(stream, [decision(0, None, line(p0=10))], "a") for stream in (Q, R)]
    (many,) = check_bounds(dict(zip((Q, R), vague, strict=True)), {A0: 0}, {A0: 10})
    assert (many.kind, many.amount) == (DUPLICATE, 10)
    assert "20 offsets of a-0 are in batches, but it has had only 10" in many.told


def test_batches_of_an_earlier_topic_of_the_same_name_are_not_taken_for_this_one() -> None:
    def of(topic_id: str, offset: int) -> str:
        return json.dumps({"a": {"0": offset}, "@topics": {"a": topic_id}, "@starts": {"a": {"0": 0}}})

    batches = [decision(0, None, of("old", 9)), decision(1, of("old", 9), of("new", 4))]
    covered = check_ranges(Q, batches, "a", "new")
    assert [(v.kind, v.batch) for v in covered.violations] == [(UNKNOWN, 0)]
    assert "read an earlier topic a (id old)" in covered.violations[0].told
    assert [(span.start, span.end) for span in covered.spans[A0]] == [(0, 4)]


def test_a_stream_that_wrote_and_of_which_nobody_knows_what_it_read_is_told() -> None:
    history = [(Q, GOOD[0]), (R, decision(0, None, None, wrote(5, 0, 3)))]
    writers = writers_of(history, "a", "b")
    assert list(writers.unknown) == [R]
    (found,) = check_known(writers.unknown, "b")
    assert found.kind == UNKNOWN
    assert "r/sink wrote to b, but which offsets it read is not recorded" in found.told


# --- transactions ----------------------------------------------------------------------------------------

WRITTEN = [
    Written(B0, ProducerIdAndEpoch(1, 0), 15, 0, 14),
    Written(B0, ProducerIdAndEpoch(1, 1), 10, 16, 25),
    Written(B0, ProducerIdAndEpoch(1, 2), 4, 27, 30),
]


def judged(
    written: list[Written],
    decisions: list[Decision] = GOOD,
    *,
    unfinished: set[str] | None = None,
    starts: dict[TopicPartition, int] | None = None,
    own: dict[int, str] | None = None,
    others: dict[int, str] | None = None,
    has_all: bool = False,
) -> Judged:
    named = {ProducerIdAndEpoch(p.producer_id, p.producer_epoch) for d in decisions for p in d.participants}
    judge = Judge("b", written, named, unfinished or set(), starts or {}, has_all=has_all)
    judge.judge(Q, decisions, own or {})
    if others is not None:
        judge.judge_others(others)
    return judge.result()


def test_transactions_that_decisions_name_are_whole() -> None:
    found = judged(
        [*WRITTEN, Written(B1, NO_TRANSACTION, 7, 0, 6), Written(B1, ProducerIdAndEpoch(9, 0), 2, 7, 8)]
    )
    assert found.violations == []
    assert (found.outputs, found.transactions, found.other_records) == (29, 3, 9)


def test_outputs_are_those_of_the_output_and_rows_those_of_all_topics() -> None:
    both = [decision(0, None, line(p0=10), wrote(1, 0, 20, B0, TopicPartition("c", 0)))]
    elsewhere = Written(TopicPartition("c", 0), ProducerIdAndEpoch(1, 0), 5, 0, 4)
    found = judged([WRITTEN[0], elsewhere], both)
    assert (found.outputs, found.violations) == (15, [])


def test_what_no_decision_covers_is_foreign() -> None:
    strangers = [Written(B1, NO_TRANSACTION, 7, 0, 6), Written(B1, ProducerIdAndEpoch(9, 0), 2, 7, 8)]
    strangers.append(Written(B0, ProducerIdAndEpoch(9, 3), 4, 40, 43))
    found = judged([*WRITTEN, *strangers], others={9: "somebody"})
    assert [(v.kind, v.amount) for v in found.violations] == [(FOREIGN, 7), (FOREIGN, 6)]
    assert "producers without transactions wrote 7 records (b-1 offsets 0 to 6)" in found.violations[0].told
    assert found.violations[1].told.startswith("somebody (producer 9) committed 6 records")
    assert total(found.violations, DUPLICATE) == 0
    older = [Written(B0, ProducerIdAndEpoch(9, 0), 2, 1, 2)]
    assert judged([*WRITTEN[1:], *older], GOOD[1:], others={}).violations == [], "before the history begins"
    late = judged([*WRITTEN[1:], *older], GOOD[1:], others={}, has_all=True)
    assert [v.kind for v in late.violations] == [FOREIGN], "a stream that begins late, as in foreachBatch"


def test_records_that_are_missing_are_lost() -> None:
    (found,) = judged([WRITTEN[0], WRITTEN[1]._replace(records=6), WRITTEN[2]], starts={B0: 20}).violations
    assert (found.kind, found.amount, found.batch) == (LOST, 4, 1)
    assert "b-0 begins at offset 20" in found.told
    (found,) = judged([WRITTEN[0], WRITTEN[2]]).violations
    assert (found.kind, found.amount) == (LOST, 10)
    (found,) = judged([WRITTEN[0], WRITTEN[1]._replace(records=12), WRITTEN[2]]).violations
    assert (found.kind, found.amount) == (DUPLICATE, 2)


def test_a_transaction_that_no_decision_names_is_a_duplicate() -> None:
    (found,) = judged([*WRITTEN, Written(B1, ProducerIdAndEpoch(1, 7), 3, 40, 42)]).violations
    assert (found.kind, found.amount, found.place) == (DUPLICATE, 3, "b-1 offsets 40 to 42")
    foreign = Written(B1, ProducerIdAndEpoch(8, 0), 3, 40, 42)
    assert judged([*WRITTEN, foreign]).violations == []
    (found,) = judged([*WRITTEN, foreign], own={8: "odradek.q.sink.run.x.0"}).violations
    assert "odradek.q.sink.run.x.0" in found.told


def test_what_is_older_than_the_history_is_not_judged() -> None:
    assert judged(WRITTEN, GOOD[1:]).violations == []
    (found,) = judged([*WRITTEN, Written(B0, ProducerIdAndEpoch(1, 9), 1, 40, 40)], GOOD[1:]).violations
    assert found.kind == DUPLICATE


def test_a_decision_that_is_being_carried_out_is_waited_for() -> None:
    last = GOOD[2].participants[0].transactional_id
    found = judged(WRITTEN[:2], unfinished={last})
    assert (found.violations, found.unfinished) == ([], 1)
    (violation,) = judged([WRITTEN[0], WRITTEN[2]], unfinished={last}).violations
    assert violation.batch == 1, "only of the last batch"


def test_pieces_of_a_partition_are_put_together() -> None:
    pieces = [
        Written(B0, ProducerIdAndEpoch(1, 0), 3, 10, 12),
        Written(B0, ProducerIdAndEpoch(1, 0), 2, 4, 5),
        WRITTEN[1],
    ]
    assert merge(pieces) == [Written(B0, ProducerIdAndEpoch(1, 0), 5, 4, 12), WRITTEN[1]]


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
