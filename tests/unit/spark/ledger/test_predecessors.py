"""A stream is told of those that read and wrote the same topics before it."""

import json

from odradek.spark.ledger.ledger import (
    Decision,
    LedgerEntry,
    Participant,
    Range,
    Stream,
    View,
    decide,
    decode_entry,
    encode_entry,
    entry_key,
)
from odradek.spark.ledger.predecessors import describe_predecessors

OLD, NEW = Stream("old", "sink"), Stream("new", "sink")


def decision(source: str, *sinks: str, batch: int = 0) -> Decision:
    participants = tuple(Participant(f"id-{sink}", 7, 1, 10, ((sink, 0),)) for sink in sinks)
    range_ = Range((), (json.dumps({source: {"0": 5}, "@cluster": "c"}),))
    return Decision(batch, "run", "", range_, participants, 1_000)


def told(first: LedgerEntry, stream: Stream, known: LedgerEntry | None, now: Decision) -> list[str]:
    view = View()
    view.entries[entry_key(OLD)] = first
    return describe_predecessors(view, stream, known, decide(known, now)._replace(name="mine"))


def test_a_stream_that_does_what_another_did_is_told_with_both_names() -> None:
    first = decide(None, decision("a", "b"))
    (warning,) = told(first, NEW, None, decision("a", "b"))
    assert warning == (
        "mine (new/sink) begins to write to b what it reads from a, but the query old/sink did so before: "
        "was a checkpoint changed or deleted? Records that both read are written twice"
    )
    for source, sink in (("x", "b"), ("a", "x")):
        assert told(first, NEW, None, decision(source, sink)) == []
    assert told(first, Stream("old", "other"), None, decision("a", "b")) == [], "a second sink of one query"


def test_it_is_told_once_and_whatever_the_last_batch_of_the_other_one_wrote() -> None:
    first = decide(decide(None, decision("a", "b")), decision("a", batch=1))
    known = decide(None, decision("a"))
    assert len(told(first, NEW, known, decision("a", "b", batch=1))) == 1
    known = decide(known, decision("a", "b", batch=1))
    assert told(first, NEW, known, decision("a", "b", batch=2)) == []


def test_what_a_stream_wrote_to_is_kept_and_entries_without_it_are_read() -> None:
    first = decide(None, decision("a", "b", "c"))._replace(name="mine")
    assert decode_entry(encode_entry(first)) == first
    later = decide(first, decision("a", "d", batch=1))
    assert (later.topics, later.name) == (("b", "c", "d"), "mine")
    older = json.loads(encode_entry(first))
    del older["topics"], older["name"]
    assert decode_entry(json.dumps(older).encode()) == first._replace(name="")
