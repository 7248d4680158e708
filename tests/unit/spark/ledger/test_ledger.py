"""The rules of the ledger, without a cluster: which run may decide a batch, and what is cleaned up."""

import pytest

from odradek.spark.ledger.ledger import (
    LONGEST_MEMORY,
    Decision,
    Finish,
    LedgerEntry,
    LedgerError,
    Participant,
    Propose,
    Range,
    Stream,
    SupersededError,
    View,
    coordinator_id,
    decide,
    decode_decision,
    decode_entry,
    encode_decision,
    encode_entry,
    entry_key,
    judge,
    participant_id,
    plan_sweep,
    run_of,
    take_over,
)

STREAM = Stream("q", "s")
FIRST, SECOND = Range((), ('{"in": {"0": 5}}',)), Range(('{"in": {"0": 5}}',), ('{"in": {"0": 9}}',))


def decision(batch: int = 0, run: str = "aaaa", range_: Range = FIRST, *ids: str) -> Decision:
    participants = tuple(Participant(id_, 7, 1, 10, (("out", 0),)) for id_ in ids)
    return Decision(batch, run, "", range_, participants, 1_000)


def entry(batch: int = 0, run: str = "aaaa", *superseded: str, range_: Range = FIRST) -> LedgerEntry:
    return LedgerEntry(run, superseded, decision(batch, run, range_))


def test_an_undecided_batch_is_proposed() -> None:
    assert judge(None, 0, "aaaa", FIRST) == Propose(None)
    known = entry(0)
    assert judge(known, 1, "aaaa", SECOND) == Propose(known)
    assert judge(known, 1, "bbbb", SECOND) == Propose(known), "a new run goes on after the last one"


def test_a_decided_batch_is_finished_by_whoever_comes() -> None:
    known = entry(3, "aaaa", range_=SECOND)
    for run in ("aaaa", "bbbb"):
        assert judge(known, 3, run, SECOND) == Finish(known.decision)
        assert judge(known, 3, run, Range()) == Finish(known.decision), "where the range is not known"


def test_a_batch_of_other_records_is_refused_with_both_ranges() -> None:
    with pytest.raises(LedgerError, match="older copy of the checkpoint") as refusal:
        judge(entry(3, range_=FIRST), 3, "bbbb", SECOND)
    for end in (*FIRST.end, *SECOND.end):
        assert end in str(refusal.value)


def test_an_older_batch_is_refused_with_both_ranges() -> None:
    with pytest.raises(LedgerError, match="older than the last one") as refusal:
        judge(entry(3, range_=SECOND), 2, "bbbb", FIRST)
    for end in (*FIRST.end, *SECOND.end):
        assert end in str(refusal.value)


@pytest.mark.parametrize("known", [None, entry(3)])
def test_batches_that_are_missing_are_refused_unless_the_user_says_so(known: LedgerEntry | None) -> None:
    with pytest.raises(LedgerError, match="adoptCheckpoint=true"):
        judge(known, 7, "bbbb", SECOND)
    assert judge(known, 7, "bbbb", SECOND, skips=True) == Propose(known)


def test_a_write_that_may_skip_batches_still_does_not_go_back() -> None:
    known = entry(36, range_=SECOND)
    assert judge(known, 36, "bbbb", SECOND, skips=True) == Finish(known.decision)
    with pytest.raises(LedgerError, match=r"batch 35 .* older than the last one that was committed, 36"):
        judge(known, 35, "bbbb", FIRST, skips=True)


def test_a_run_that_was_superseded_decides_no_more() -> None:
    first = decide(None, decision(0, "aaaa"))
    second = decide(first, decision(1, "bbbb", SECOND))
    assert second.superseded == ("aaaa",)
    for batch in (0, 2):  # it may have slept for long: its checkpoint is no older copy
        with pytest.raises(SupersededError, match="two drivers"):
            judge(second, batch, "aaaa", SECOND)
    assert judge(second, 2, "bbbb", SECOND) == Propose(second)


def test_runs_that_never_decided_are_superseded_with_the_first_decision_of_another() -> None:
    known = decide(None, decision(0, "bbbb"), ["aaaa", "bbbb", "cccc"])
    assert known.superseded == ("aaaa", "cccc")
    with pytest.raises(SupersededError):
        judge(known, 1, "cccc", SECOND)


def test_taking_over_changes_who_decides_and_nothing_else() -> None:
    known = decide(None, decision(4, "aaaa", SECOND, "id"))
    taken = take_over(known, "bbbb", "job", ["cccc"])
    assert (taken.run, set(taken.superseded)) == ("bbbb", {"aaaa", "cccc"})
    assert taken.decision == known.decision._replace(run="bbbb", job="job")
    assert judge(taken, 4, "bbbb", SECOND) == Finish(taken.decision)


def test_a_stream_forgets_runs_of_long_ago() -> None:
    known = None
    for number in range(LONGEST_MEMORY + 50):
        known = decide(known, decision(number, f"run{number}"))
    assert known is not None
    assert len(known.superseded) == LONGEST_MEMORY
    assert known.superseded[-1] == f"run{LONGEST_MEMORY + 48}"


# --- ids and the sweep -----------------------------------------------------------------------------------


def test_ids_tell_their_run() -> None:
    mine = participant_id("p", STREAM, "aaaa", "worker", 3)
    assert mine == "p.q.s.aaaa.worker.3"
    assert run_of("p", STREAM, mine) == "aaaa"
    for other in (
        coordinator_id("p", STREAM),
        "p.q.other.aaaa.worker.3",
        "x.q.s.aaaa.worker.3",
        "p.q.s.aaaa",
    ):
        assert run_of("p", STREAM, other) is None


def test_a_sweep_spares_what_is_decided_and_what_is_not_its_own() -> None:
    mine, decided, dead = (participant_id("p", STREAM, r, "w", 0) for r in ("aaaa", "bbbb", "cccc"))
    known = LedgerEntry("aaaa", ("bbbb", "cccc"), decision(1, "bbbb", FIRST, decided))
    found = [mine, decided, dead, coordinator_id("p", STREAM), "somebody.else"]
    assert plan_sweep(known, "p", STREAM, "aaaa", found) == ([mine, dead], [], [])


@pytest.mark.parametrize("known", [None, entry(1, "bbbb")])
def test_a_run_that_the_ledger_does_not_rule_out_is_superseded_before_it_is_swept(
    known: LedgerEntry | None,
) -> None:
    """It may be about to decide: only when it has lost the right to, its transactions may be ended."""
    other = participant_id("p", STREAM, "bbbb", "w", 0)
    assert plan_sweep(known, "p", STREAM, "aaaa", [other]) == ([], [other], ["bbbb"])


# --- records ---------------------------------------------------------------------------------------------


def test_records_come_back_as_they_were() -> None:
    written = LedgerEntry("bbbb", ("aaaa",), decision(3, "bbbb", SECOND, "x", "y"))
    assert decode_entry(encode_entry(written)) == written
    assert decode_decision(encode_decision(STREAM, written.decision)) == (STREAM, written.decision)


def test_partitions_take_little_room() -> None:
    """Hundreds of tasks that each write to hundreds of partitions: a decision is one record."""
    topics = {"a": [0, 1, 2, 3, 7, 9, 10], "b": [5], "with, a-dash": [2, 4]}
    partitions = tuple((topic, partition) for topic, given in topics.items() for partition in given)
    written = decision()._replace(participants=(Participant("x", 7, 1, 10, partitions),))
    assert decode_decision(encode_decision(STREAM, written)) == (STREAM, written)
    assert b'{"a":"0-3,7,9-10","b":"5","with, a-dash":"2,4"}' in encode_decision(STREAM, written)


def test_a_ledger_of_a_newer_version_is_refused() -> None:
    with pytest.raises(LedgerError, match="a newer version wrote it"):
        decode_entry(encode_entry(entry()).replace(b'"format":1', b'"format":2'))


def test_only_what_is_committed_counts() -> None:
    view, key = View(), entry_key(STREAM)
    view.apply(1, [(key, encode_entry(entry(0)))])
    assert view.is_pending(STREAM)
    assert view.entry(STREAM) is None
    view.end(1, commit=True)
    assert not view.is_pending(STREAM)
    assert view.entry(STREAM) == entry(0)
    view.apply(1, [(key, encode_entry(entry(1)))])
    view.end(1, commit=False)
    assert view.entry(STREAM) == entry(0)


def test_what_another_query_is_writing_keeps_nobody_waiting() -> None:
    view = View()
    view.apply(1, [(entry_key(Stream("other", "s")), encode_entry(entry(0)))])
    assert not view.is_pending(STREAM)
    assert view.is_pending(Stream("other", "s"))


def test_a_stream_that_was_removed_is_not_known() -> None:
    view, key = View(), entry_key(STREAM)
    for value in (encode_entry(entry(0)), None):
        view.apply(1, [(key, value)])
        view.end(1, commit=True)
    assert view.entry(STREAM) is None
