"""Checkers of a Spark query after it has ended. Pure.

tests/unit/sim/test_spark_checkers.py checks that each one finds its violation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.core.types import TopicPartition
from odradek.spark.ledger.ledger import Decision, Participant


class Visible(NamedTuple):
    """A record that a read_committed consumer gets, and its transaction."""

    tp: TopicPartition
    offset: int
    value: bytes
    producer_id: int
    producer_epoch: int


def not_exactly_once(inputs: int, visible: Iterable[Visible]) -> list[str]:
    """Every number of the input is in the output once."""
    places: dict[bytes, list[str]] = {}
    for record in visible:
        places.setdefault(record.value, []).append(f"{record.tp} {record.offset}")
    wanted = [str(number).encode() for number in range(inputs)]
    found = [
        f"lost: {value.decode()} is in the input but not in the output"
        for value in wanted
        if value not in places
    ]
    known = set(wanted)
    for value, at in places.items():
        if value not in known:
            found.append(f"invented: {value!r} came out at {' and '.join(at)}")
        elif len(at) > 1:
            found.append(f"duplicated: {value.decode()} came out at {' and '.join(at)}")
    return found


def wrong_decisions(history: Sequence[Decision], ranges: Mapping[int, tuple[int, int]]) -> list[str]:
    """Batches are decided in order, each once. A driver that takes over repeats the last decision.

    `ranges` has the batches of the checkpoint. All of them are done.
    """
    found: list[str] = []
    last: Decision | None = None
    for decision in history:
        if last is not None and decision.batch == last.batch:
            if (decision.participants, decision.range) != (last.participants, last.range):
                found.append(
                    f"batch {decision.batch} was decided twice: by {last.run} with {_ids(last)}, "
                    f"by {decision.run} with {_ids(decision)}"
                )
        elif decision.batch != (0 if last is None else last.batch + 1):
            found.append(f"batch {decision.batch} was decided after {None if last is None else last.batch}")
        first, end = ranges.get(decision.batch, (-1, -1))
        if (decision.range.start, decision.range.end) != ((str(first),), (str(end),)):
            found.append(f"batch {decision.batch} was decided with {decision.range}, not {first} to {end}")
        last = decision
    decided = {decision.batch for decision in history}
    found += [f"batch {batch} is done and was never decided" for batch in ranges if batch not in decided]
    return found


def _ids(decision: Decision) -> str:
    return ", ".join(participant.transactional_id for participant in decision.participants) or "nobody"


def undecided_commits(history: Iterable[Decision], visible: Iterable[Visible]) -> list[str]:
    """Visible records were written by participants of a decision, with the number of records in the
    decision."""
    rows: dict[tuple[int, int], int] = {}
    for record in visible:
        key = record.producer_id, record.producer_epoch
        rows[key] = rows.get(key, 0) + 1
    named: dict[tuple[int, int], Participant] = {
        participant[1:3]: participant for decision in history for participant in decision.participants
    }
    found = [
        f"producer {key[0]} epoch {key[1]} was committed with {count} records, but no decision names it"
        for key, count in rows.items()
        if key not in named
    ]
    for key, participant in named.items():
        if rows.get(key, 0) != participant.rows:
            found.append(
                f"{participant.transactional_id} was decided with {participant.rows} records, "
                f"and {rows.get(key, 0)} are visible"
            )
    return found
