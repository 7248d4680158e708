"""What a replica that is not in sync is doing, from two samples and what is known of its broker."""

import pytest

from odradek.cli.requests.replica_lag import BrokerState, Doing, LaggingReplica, Reach, Sample, explain
from odradek.core.types import TopicPartition

TP = TopicPartition("orders", 0)
ALIVE = BrokerState(3, True, False, Reach.ANSWERED, "h:9")


def told(
    *ends: tuple[int | None, int | None],
    broker: BrokerState = ALIVE,
    leader: int | None = 1,
    is_offline: bool = False,
    is_disk_error: bool = False,
    since_ms: int | None = None,
    estimate: int | None = None,
) -> LaggingReplica:
    """`ends` of replica and leader, two seconds apart; a record has 10 bytes."""
    before, now = (
        Sample(2.0 * i, own, end, None if own is None else own * 10, None if end is None else end * 10)
        for i, (own, end) in enumerate(ends)
    )
    return explain(TP, leader, broker, is_offline, is_disk_error, before, now, since_ms, estimate)


def test_a_replica_that_catches_up_has_rates_and_a_time() -> None:
    found = told((0, 1_000), (400, 1_200), since_ms=77)
    assert (found.doing, found.records, found.bytes, found.since_ms) == (Doing.FETCHING, 800, 8_000, 77)
    assert (found.records_per_s, found.bytes_per_s) == (200, 2_000)
    assert found.catch_up_s == 8  # it gains 200 in two seconds, and lacks 800
    assert not found.is_estimate


def test_a_replica_that_gains_nothing_will_never_be_in_sync() -> None:
    found = told((0, 1_000), (400, 1_500))
    assert (found.doing, found.records_per_s, found.catch_up_s) == (Doing.FETCHING, 200, None)
    assert "more slowly" in found.cause


def test_what_goes_back_is_truncating_and_what_stands_still_does_not_fetch() -> None:
    assert told((500, 400), (300, 400)).doing is Doing.TRUNCATING
    stalled = told((300, 400), (300, 400))
    assert (stalled.doing, stalled.records_per_s, stalled.catch_up_s) == (Doing.STALLED, 0, None)
    done = told((400, 400), (400, 400))
    assert (done.doing, done.records, done.catch_up_s) == (Doing.CAUGHT_UP, 0, 0)


@pytest.mark.parametrize(
    ("broker", "doing", "word"),
    [
        (BrokerState(3, False, True, Reach.TIMED_OUT), Doing.NOT_REGISTERED, "not registered"),
        (BrokerState(3, True, True, Reach.REFUSED, "h:9"), Doing.DOWN, "h:9"),
        (BrokerState(3, True, False, Reach.REFUSED, "h:9"), Doing.DOWN, "h:9"),
        (BrokerState(3, True, True, Reach.TIMED_OUT, "h:9"), Doing.UNREACHABLE, "h:9"),
        (BrokerState(3, True, False, Reach.SILENT, "h:9"), Doing.UNREACHABLE, "h:9"),
        (BrokerState(3, True, True, Reach.SILENT, "h:9"), Doing.RECOVERING, "recovers"),
        (BrokerState(3, True, True, Reach.ANSWERED, "h:9"), Doing.FENCED, "heartbeats"),
    ],
)
def test_a_broker_that_does_not_serve_is_the_cause(broker: BrokerState, doing: Doing, word: str) -> None:
    """Its replicas are offline then, which is not the fault of a disk."""
    found = told((None, 10), (None, 10), broker=broker, is_offline=True)
    assert found.doing is doing
    assert word in found.cause
    assert (found.records, found.bytes, found.records_per_s, found.catch_up_s) == (None, None, None, None)


def test_a_disk_that_failed_is_the_cause_while_its_broker_serves() -> None:
    for found in (
        told((None, 10), (None, 10), is_offline=True),
        told((None, 10), (None, 10), is_disk_error=True),
    ):
        assert found.doing is Doing.DISK
        assert found.next == "odradek cluster logdirs --broker 3"


def test_without_a_leader_there_is_nobody_to_fetch_from() -> None:
    assert told((5, None), (5, None), leader=None).doing is Doing.NO_LEADER
    assert told((None, None), (None, None)).doing is Doing.UNKNOWN


def test_the_records_of_a_broker_that_is_down_are_an_estimate_since_it_was_seen() -> None:
    down = BrokerState(3, True, True, Reach.REFUSED, "h:9", unseen_since_ms=1_234)
    found = told((None, 10), (None, 10), broker=down, estimate=4)
    assert (found.records, found.is_estimate, found.since_ms) == (4, True, 1_234)
    known = told((3, 10), (3, 10), estimate=4)
    assert (known.records, known.is_estimate) == (7, False)


def test_no_lag_is_negative() -> None:
    """A follower may be asked after its leader."""
    assert told((10, 8), (10, 8)).records == 0
