"""Plants every anomaly that the judges claim to find, alone, and shows them histories that are allowed."""

from random import Random

import pytest

from odradek.core.types import TopicPartition
from odradek.sim.checkers.anomalies import JUDGES, anomalies
from odradek.sim.checkers.operations import Operations, Outcome

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def acknowledged(operations: Operations, *values: bytes, client: str = "p", first: int = 0) -> None:
    for offset, value in enumerate(values, first):
        operations.send(client, A, value).acknowledged(offset)


def wrote(*values: bytes) -> Operations:
    """One producer, acknowledged at 0, 1, 2 and so on."""
    operations = Operations()
    acknowledged(operations, *values)
    return operations


def lost_write() -> Operations:
    operations = wrote(b"1", b"2", b"3")
    operations.assign("c", A, [(0, b"1")])
    operations.assign("c", A, [(2, b"3")])
    return operations


def lost_write_at_an_offset_that_became_anothers() -> Operations:
    """Its acknowledgement said no offset, so that only this is wrong."""
    operations = Operations()
    operations.send("p", A, b"1").acknowledged(None)
    operations.send("q", A, b"2").acknowledged(0)
    operations.assign("c", A, [(0, b"2")])
    return operations


def unseen() -> Operations:
    operations = wrote(b"1", b"2")
    operations.assign("c", A, [(0, b"1")])
    return operations


def unseen_where_nobody_reads() -> Operations:
    return wrote(b"1")


def duplicate() -> Operations:
    operations = wrote(b"1")
    operations.assign("c", A, [(0, b"1"), (1, b"1")])
    return operations


def duplicate_of_an_unknown_send() -> Operations:
    operations = Operations()
    operations.send("p", A, b"1")
    operations.assign("c", A, [(0, b"1"), (5, b"1")])
    return operations


def duplicate_that_is_acknowledged_elsewhere() -> Operations:
    operations = wrote(b"1")
    operations.assign("c", A, [(7, b"1")])
    return operations


def inconsistent_offsets() -> Operations:
    operations = Operations()
    operations.send("p", A, b"1")
    operations.send("q", A, b"2")
    operations.assign("c", A, [(0, b"1")])
    operations.assign("d", A, [(0, b"2")])
    return operations


def aborted_read() -> Operations:
    operations = wrote(b"1", b"2")
    operations.sends[1].failed()
    operations.assign("c", A, [(0, b"1"), (1, b"2")])
    return operations


def invented_read() -> Operations:
    operations = wrote(b"1")
    operations.assign("c", A, [(0, b"1"), (1, b"x")])
    return operations


def invented_read_in_another_partition() -> Operations:
    operations = Operations()
    operations.send("p", A, b"1")
    operations.assign("c", B, [(0, b"1")])
    return operations


def nonmonotonic_send() -> Operations:
    operations = Operations()
    operations.send("p", A, b"1").acknowledged(1)
    operations.send("p", A, b"2").acknowledged(0)
    operations.assign("c", A, [(0, b"2"), (1, b"1")])
    return operations


def nonmonotonic_send_that_only_a_reader_saw() -> Operations:
    operations = Operations()
    operations.send("p", A, b"1")
    operations.send("p", A, b"2").acknowledged(0)
    operations.assign("c", A, [(0, b"2"), (1, b"1")])
    return operations


def nonmonotonic_poll() -> Operations:
    operations = wrote(b"1", b"2")
    operations.assign("c", A, [(0, b"1"), (1, b"2"), (0, b"1"), (1, b"2")])
    return operations


def nonmonotonic_poll_of_the_same_again() -> Operations:
    operations = wrote(b"1")
    operations.assign("c", A, [(0, b"1"), (0, b"1")])
    return operations


def poll_skip() -> Operations:
    operations = wrote(b"1", b"2", b"3")
    operations.assign("c", A, [(0, b"1"), (2, b"3")])
    operations.assign("d", A, [(0, b"1"), (1, b"2"), (2, b"3")])
    return operations


PLANTED = {
    "lost write": (lost_write, lost_write_at_an_offset_that_became_anothers),
    "unseen": (unseen, unseen_where_nobody_reads),
    "duplicate": (duplicate, duplicate_of_an_unknown_send, duplicate_that_is_acknowledged_elsewhere),
    "inconsistent offsets": (inconsistent_offsets,),
    "aborted read": (aborted_read,),
    "invented read": (invented_read, invented_read_in_another_partition),
    "nonmonotonic send": (nonmonotonic_send, nonmonotonic_send_that_only_a_reader_saw),
    "nonmonotonic poll": (nonmonotonic_poll, nonmonotonic_poll_of_the_same_again),
    "poll skip": (poll_skip,),
}


@pytest.mark.parametrize(
    ("name", "plant"),
    [pytest.param(name, plant, id=plant.__name__) for name, plants in PLANTED.items() for plant in plants],
)
def test_what_is_planted_is_found_and_nothing_else(name: str, plant: object) -> None:
    assert callable(plant)
    found = anomalies(plant())
    assert set(found) == {name}, found
    assert len(found[name]) == 1, found


def test_every_judge_has_a_planted_history() -> None:
    assert set(PLANTED) == set(JUDGES)


def test_an_acknowledged_record_whose_offset_another_took_is_lost_and_the_offset_inconsistent() -> None:
    """What an election that is not clean does."""
    operations = wrote(b"1", b"2")
    acknowledged(operations, b"3", client="q", first=1)
    operations.assign("c", A, [(0, b"1"), (1, b"3")])
    assert set(anomalies(operations)) == {"lost write", "inconsistent offsets"}


def test_a_value_that_was_sent_twice_proves_nothing() -> None:
    operations = wrote(b"1", b"1")
    with pytest.raises(AssertionError, match="unique"):
        anomalies(operations)


def test_an_acknowledged_record_cannot_be_acknowledged_again() -> None:
    operations = wrote(b"1")
    with pytest.raises(AssertionError, match="two outcomes"):
        operations.sends[0].acknowledged(0)


def test_what_kafka_allows_is_not_found() -> None:
    operations = wrote(b"1", b"2", b"3")
    operations.send("p", A, b"maybe")  # unknown, and nobody saw it
    operations.send("p", A, b"later")  # unknown, but it is there
    aborted = operations.send("q", A, b"aborted")
    aborted.acknowledged(4)
    aborted.failed()
    operations.send("q", A, b"refused").failed()
    operations.send("q", A, b"a duplicate's answer has no offset").acknowledged(None)
    last = b"a duplicate's answer has no offset"
    operations.assign("c", A, [(0, b"1"), (1, b"2")])
    operations.assign("c", A, [(0, b"1"), (1, b"2"), (2, b"3")])  # nothing was committed: from the start
    operations.assign("d", A, [(3, b"later"), (6, last)])  # over an aborted record and a marker
    assert anomalies(operations) == {}


class Model:
    """A log that is right, with transactions that abort, lost answers, and consumers that are reassigned."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.operations = Operations()
        self.ends = {A: 0, B: 0}
        self.visible: dict[TopicPartition, list[tuple[int, bytes]]] = {A: [], B: []}

    def play(self) -> Operations:
        for step in range(200):
            tp = self.rng.choice((A, B))
            if self.rng.random() < 0.7:
                self.write(tp, step)
            else:
                log = self.visible[tp]
                first = self.rng.randint(0, len(log))
                chosen = log[first : first + self.rng.randint(0, 9)]
                self.operations.assign(f"c{self.rng.randint(0, 3)}", tp, chosen)
        for tp, log in self.visible.items():  # twice, so that one may be damaged
            self.operations.assign("last", tp, log)
            self.operations.assign("last but one", tp, log)
        return self.operations

    def write(self, tp: TopicPartition, step: int) -> None:
        send = self.operations.send(f"p{self.rng.randint(0, 2)}", tp, b"%d" % step)
        chance = self.rng.random()
        if chance < 0.1:
            return  # never arrived
        offset = self.ends[tp]
        self.ends[tp] += 1
        if chance < 0.2:
            self.ends[tp] += 1  # and its marker
            send.acknowledged(offset)
            send.failed()
            return
        self.visible[tp].append((offset, send.value))
        if chance > 0.3:
            send.acknowledged(offset if chance > 0.35 else None)


@pytest.mark.parametrize("seed", range(30))
def test_a_log_that_is_right_has_no_anomaly_and_one_that_forgets_a_record_has(seed: int) -> None:
    operations = Model(seed).play()
    assert anomalies(operations) == {}
    rng = Random(seed)
    victim = rng.choice([send for send in operations.sends if send.outcome is Outcome.ACKNOWLEDGED])
    for run in operations.runs:
        run.polled = [entry for entry in run.polled if entry.value != victim.value]
    assert set(anomalies(operations)) & {"lost write", "unseen"}


@pytest.mark.parametrize("seed", range(30))
def test_a_read_that_forgets_one_record_skips_it(seed: int) -> None:
    operations = Model(seed).play()
    rng = Random(seed)
    run = rng.choice([run for run in operations.runs if len(run.polled) > 2])
    del run.polled[rng.randint(1, len(run.polled) - 2)]
    assert set(anomalies(operations)) == {"poll skip"}
