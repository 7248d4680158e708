"""Which transactional ids a worker process uses, and which it uses again."""

import pytest

from odradek.spark.ledger.ledger import Stream
from odradek.spark.sink import participating
from odradek.spark.sink.participating import Slots
from odradek.spark.sink.tasks import Task

STREAM = Stream("q", "s")


def test_a_slot_is_used_again_in_a_later_batch_and_not_before() -> None:
    slots = Slots("p", "w")
    first = [slots.take(Task(STREAM, "run", 0)) for _ in range(3)]
    assert len(set(first)) == 3
    assert [slots.take(Task(STREAM, "run", 1)) for _ in range(3)] == first
    assert slots.take(Task(STREAM, "run", 1)) not in first


def test_ids_of_a_run_that_is_forgotten_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last transaction may still be about to be committed."""
    monkeypatch.setattr(participating, "_MOST_RUNS", 2)
    slots = Slots("p", "w")
    first = slots.take(Task(STREAM, "run", 0))
    kept = slots.take(Task(Stream("job-0", "s"), "run", 0))
    for number in range(1, 50):
        slots.take(Task(Stream(f"job-{number}", "s"), "run", 0))
        assert slots.take(Task(Stream("job-0", "s"), "run", number)) == kept, "it is in use"
    assert slots.take(Task(STREAM, "run", 1)) != first
    assert len(slots._used) <= 2
