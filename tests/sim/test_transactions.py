"""Proves that transactions survive their seeds, and that nodes which break a promise of theirs are caught."""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.handlers import produce
from odradek.coordinators.groups.offsets.offsets import OffsetStore
from odradek.coordinators.shard import CoordinatorResult
from odradek.coordinators.transactions import ending, initializing, markers, partitions
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.coordinators.transactions.shard import TransactionShard
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_ID
from odradek.log.log import FetchInfo
from odradek.log.parts.bounds import Bounds
from odradek.log.producers.state import ProducerState
from odradek.runtime.slices import Paced
from odradek.sim.main import EXIT_OK, StoryKind, odradek_node, report, run
from odradek.sim.stories.outcome import Outcome
from odradek.sim.stories.transactions import TransactionStory

CHUNKS, SEEDS_PER_CHUNK = 2, 12
SEEDS_TO_CATCH_A_BUG = 20


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds_have_no_finding(chunk: int, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(SEEDS_PER_CHUNK, chunk * SEEDS_PER_CHUNK, story=StoryKind.TRANSACTIONS)
    output = capfd.readouterr().out
    assert code == EXIT_OK, output
    assert f"{SEEDS_PER_CHUNK} seeds without a finding" in output


def test_a_seed_tells_the_same_story_again() -> None:
    first, second = (TransactionStory(3, odradek_node).play() for _ in range(2))
    assert first.acknowledged_commits > 20
    assert (first.digest, first.events) == (second.digest, second.events)


def catch() -> Outcome:
    for seed in range(SEEDS_TO_CATCH_A_BUG):
        outcome = TransactionStory(seed, odradek_node).play()
        if outcome.violations:
            return outcome
    pytest.fail(f"nothing was found in {SEEDS_TO_CATCH_A_BUG} seeds")


Plant = Callable[[pytest.MonkeyPatch], None]


def forgets_what_was_decided(patch: pytest.MonkeyPatch) -> None:
    def activate(self: TransactionShard, now: Any) -> CoordinatorResult:
        self.is_active = True
        self._next_look_ms = now.steady_ms + self.config.abort_interval_ms
        return CoordinatorResult()

    patch.setattr(TransactionShard, "activate", activate)


def never_looks_at_the_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionShard, "tick", lambda self, now: None)
    patch.setattr(TransactionShard, "next_deadline_ms", lambda self: None)


def serves_zombies(patch: pytest.MonkeyPatch) -> None:
    def current(shard: TransactionShard, transactional_id: str, producer: Any) -> Any:
        return shard.transactions[transactional_id]

    patch.setattr(partitions, "_current", current)


def lets_anybody_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ending, "_is_answered", lambda shard, txn, command: False)
    patch.setattr(ending, "_check_same_epoch", lambda shard, txn, command: None)


def ends_only_where_it_is_easy(patch: pytest.MonkeyPatch) -> None:
    attempt = markers.MarkerSender._attempt

    def lazy(self: markers.MarkerSender, order: Any) -> Paced[None]:
        while len(order.left) > 2:
            order.left.popitem()
        return attempt(self, order)

    patch.setattr(markers.MarkerSender, "_attempt", lazy)


def ends_with_the_wrong_marker(patch: pytest.MonkeyPatch) -> None:
    send = markers.MarkerSender.send

    def wrong(self: markers.MarkerSender, index: int, order: Any) -> None:
        send(self, index, order._replace(commit=True))

    patch.setattr(markers.MarkerSender, "send", wrong)


def shows_what_is_undecided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounds, "last_stable_offset", property(lambda self: self.high_watermark))


def tells_no_one_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    def init(self: FetchInfo, first_offset: int, slice: Any, aborted: Any = None) -> None:
        self.first_offset, self.slice, self.aborted = first_offset, slice, [] if aborted else aborted
        self.size = 0 if slice is None else slice.size

    patch.setattr(FetchInfo, "__init__", init)


def commits_offsets_at_once(patch: pytest.MonkeyPatch) -> None:
    put = OffsetStore.put

    def early(self: OffsetStore, producer_id: int, *rest: Any) -> None:
        put(self, NO_PRODUCER_ID, *rest)

    patch.setattr(OffsetStore, "put", early)


def writes_behind_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(produce, "unless_overtaken", lambda node, entries, checked: checked)
    patch.setattr(produce, "check_transaction", lambda node, request: None)


def aborts_what_was_to_be_kept(patch: pytest.MonkeyPatch) -> None:
    def keep(shard: TransactionShard, txn: Any, command: Any, now: Any) -> CoordinatorResult:
        return ending.abort(shard, txn, now, KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS))

    patch.setattr(initializing, "_keep", keep)


def forgets_what_is_open(patch: pytest.MonkeyPatch) -> None:
    load = ProducerState.load
    patch.setattr(ProducerState, "load", lambda self, entries, end: load(self, [], end))


def gives_one_producer_id_to_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerIds, "take", lambda self: 5)


def refuses_without_reason(patch: pytest.MonkeyPatch) -> None:
    def fence(self: TransactionShard, *_: Any) -> KafkaError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    patch.setattr(TransactionShard, "fence", fence)


def takes_every_abort_for_one_of_the_next(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ending, "_is_of_the_next", lambda shard, command: not command.commit)


PLANTS: dict[Plant, str] = {
    forgets_what_was_decided: "stuck",
    never_looks_at_the_time: "stuck",
    serves_zombies: "",
    lets_anybody_end: "",
    ends_only_where_it_is_easy: "",
    ends_with_the_wrong_marker: "",
    shows_what_is_undecided: "aborted read",
    tells_no_one_what_was_aborted: "aborted read",
    commits_offsets_at_once: "not exactly once",
    gives_one_producer_id_to_all: "producer id 5 was given",
    writes_behind_the_end: "",
    aborts_what_was_to_be_kept: "lost write",
    forgets_what_is_open: "",
    refuses_without_reason: "UNKNOWN_SERVER_ERROR",
    takes_every_abort_for_one_of_the_next: "aborted read",
}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_node_that_breaks_a_promise_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    outcome = catch()
    assert any(PLANTS[plant] in violation for violation in outcome.violations), outcome.violations
    told = report(outcome, story=StoryKind.TRANSACTIONS)
    assert f"odradek sim replay {outcome.seed} --transactions" in told
