"""ListTransactions and DescribeTransactions, and the partition of a transactional id."""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.coordinators.transactions.commands import ListTransactions
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import coordinator_partition
from odradek.libraries.re2 import Pattern
from odradek.runtime.slices import at_once
from tests.unit.coordinators.transactions.harness import COMMIT, TID, A, Harness

E = ErrorCode
S = TxnState


@pytest.fixture
def three(h: Harness) -> Harness:
    """`open` is ongoing since ten seconds, `done` has committed, `idle` has never begun."""
    h.add(h.producer("open"), A, tid="open")
    h.add(h.producer("done"), A, tid="done")
    h.end(h.txn("done").client, COMMIT, tid="done")
    h.producer("idle")
    h.advance(10_000)
    return h


def listed(
    h: Harness,
    states: frozenset[TxnState] = frozenset(),
    producers: frozenset[int] = frozenset(),
    min_duration_ms: int = -1,
    pattern: str | None = None,
) -> set[str]:
    compiled = None if pattern is None else at_once(Pattern.of(pattern))
    command = ListTransactions(states, producers, min_duration_ms, compiled)
    found = h.run(lambda: h.coordinator.list(command))
    return {txn.transactional_id for txn in found}


def test_everything_is_listed_where_nothing_is_asked_for(three: Harness) -> None:
    assert listed(three) == {"open", "done", "idle"}


def test_states_producers_and_patterns_choose(three: Harness) -> None:
    assert listed(three, frozenset({S.ONGOING})) == {"open"}
    assert listed(three, frozenset({S.EMPTY, S.COMPLETE_COMMIT})) == {"done", "idle"}
    assert listed(three, producers=frozenset({three.txn("idle").producer_id})) == {"idle"}
    assert listed(three, producers=frozenset({-5})) == set()
    assert listed(three, pattern="o.*|idle") == {"open", "idle"}
    assert listed(three, frozenset({S.ONGOING}), pattern="idle") == set()


def test_who_is_open_for_longer_than_asked_is_listed(three: Harness) -> None:
    age_ms = three.clock.now_ms() - three.txn("open").start_ms
    only = frozenset({S.ONGOING})
    assert listed(three, only, min_duration_ms=age_ms - 1) == {"open"}
    assert listed(three, only, min_duration_ms=age_ms) == set()


def test_a_duration_of_zero_leaves_out_what_has_just_begun(h: Harness) -> None:
    h.add(h.producer(), A)
    assert listed(h, min_duration_ms=0) == set()
    assert listed(h, min_duration_ms=-1) == {TID}


def described(h: Harness, tid: str) -> TransactionMetadata:
    found: TransactionMetadata = h.run(lambda: h.coordinator.describe(tid))
    return found


def test_a_transaction_is_described_by_its_name(three: Harness) -> None:
    assert described(three, "open") == three.txn("open")


@pytest.mark.parametrize(("tid", "code"), [("nobody", E.TRANSACTIONAL_ID_NOT_FOUND), ("", E.INVALID_REQUEST)])
def test_a_name_that_nobody_has_is_told_so(three: Harness, tid: str, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refusal:
        described(three, tid)
    assert refusal.value.code is code


def test_nothing_is_asked_of_an_id_without_a_name(h: Harness) -> None:
    producer = h.producer()
    asks: list[Callable[[], Any]] = [
        lambda: h.coordinator.add_partitions("", producer, [A], 2),
        lambda: h.coordinator.verify_partitions("", producer, [A]),
        h.end_step(producer, COMMIT, tid=""),
    ]
    assert [h.code(ask) for ask in asks] == [E.INVALID_REQUEST] * 3


def test_an_id_stays_with_its_coordinator_when_partitions_are_added(h: Harness) -> None:
    """Those that are there are loaded as they were; the ids would be looked for elsewhere."""
    names = [f"id-{i}" for i in range(20)]
    h.partition_count = 50
    assert {h.coordinator.partition_for(name) for name in names} == {0}
    fresh = h._new_coordinator()
    places = [fresh.partition_for(name) for name in names]
    assert places == [coordinator_partition(name, 50) for name in names]
