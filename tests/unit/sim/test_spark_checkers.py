"""Plants every violation that the checkers of a Spark query claim to find, and shows them what is allowed."""

from odradek.core.types import TopicPartition
from odradek.sim.checkers import spark as checkers
from odradek.sim.checkers.spark import Visible
from odradek.spark.ledger.ledger import Decision, Participant, Range

OUT = TopicPartition("out", 0)
RANGES = {0: (0, 2), 1: (2, 3)}


def participant(name: str, producer_id: int, rows: int) -> Participant:
    return Participant(name, producer_id, 0, rows, (("out", 0),))


def decision(batch: int, *participants: Participant, run: str = "a") -> Decision:
    first, end = RANGES.get(batch, (0, 0))
    return Decision(batch, run, "", Range((str(first),), (str(end),)), participants, 0)


ZERO, ONE = decision(0, participant("x", 7, 2)), decision(1, participant("y", 8, 1))
VISIBLE = [
    Visible(OUT, 0, b"0", 7, 0),
    Visible(OUT, 1, b"1", 7, 0),
    Visible(OUT, 3, b"2", 8, 0),
]


def test_what_is_right_is_not_found() -> None:
    taken_over = ZERO._replace(run="b")
    assert checkers.not_exactly_once(3, VISIBLE) == []
    assert checkers.wrong_decisions([ZERO, taken_over, ONE], RANGES) == []
    assert checkers.undecided_commits([ZERO, taken_over, ONE], VISIBLE) == []


def test_what_is_lost_duplicated_or_invented_is_found() -> None:
    twice = Visible(OUT, 5, b"1", 9, 0)
    assert checkers.not_exactly_once(3, [*VISIBLE, twice]) == [
        "duplicated: 1 came out at out-0 1 and out-0 5"
    ]
    assert checkers.not_exactly_once(4, VISIBLE) == ["lost: 3 is in the input but not in the output"]
    assert checkers.not_exactly_once(2, VISIBLE) == ["invented: b'2' came out at out-0 3"]


def test_a_batch_that_is_decided_twice_is_found() -> None:
    other = decision(0, participant("z", 9, 2), run="b")
    (found,) = checkers.wrong_decisions([ZERO, other, ONE], RANGES)
    assert found == "batch 0 was decided twice: by a with x, by b with z"


def test_batches_out_of_order_are_found() -> None:
    assert "batch 1 was decided after None" in checkers.wrong_decisions([ONE], RANGES)
    assert checkers.wrong_decisions([ZERO, ONE, ZERO], RANGES) == ["batch 0 was decided after 1"]


def test_a_batch_without_a_decision_is_found() -> None:
    assert checkers.wrong_decisions([ZERO], RANGES) == ["batch 1 is done and was never decided"]


def test_another_range_than_the_checkpoint_has_is_found() -> None:
    (found,) = checkers.wrong_decisions([ZERO], {0: (0, 9)})
    assert found == "batch 0 was decided with 0 to 2, not 0 to 9"


def test_a_commit_without_a_decision_is_found() -> None:
    (found,) = checkers.undecided_commits([ZERO], VISIBLE)
    assert found == "producer 8 epoch 0 was committed with 1 records, but no decision names it"


def test_a_decision_that_was_not_carried_out_is_found() -> None:
    (found,) = checkers.undecided_commits([ZERO, ONE], VISIBLE[:2])
    assert found == "y was decided with 1 records, and 0 are visible"
