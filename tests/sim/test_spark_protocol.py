"""Proves that a query of Spark has its effect exactly once on every seed, and that a protocol without one of
its rules is caught."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from odradek.client.transaction_requests import RefusedError
from odradek.client.transactional import TransactionalProducer
from odradek.sim.main import EXIT_OK, StoryKind, odradek_node, report, run
from odradek.sim.stories.outcome import Outcome
from odradek.sim.stories.spark import SparkStory
from odradek.spark.ledger import deciding, finishing
from odradek.spark.ledger.deciding import Decider
from odradek.spark.ledger.ledger import Finish, Propose, coordinator_id, participant_id
from odradek.spark.sink.participating import Attempt, Slots

CHUNKS, SEEDS_PER_CHUNK = 2, 5
SEEDS_TO_CATCH_A_BUG = 20


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds_have_no_finding(chunk: int, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(SEEDS_PER_CHUNK, chunk * SEEDS_PER_CHUNK, story=StoryKind.PIPELINES)
    output = capfd.readouterr().out
    assert code == EXIT_OK, output
    assert f"{SEEDS_PER_CHUNK} seeds without a finding" in output


def test_a_seed_tells_the_same_story_again() -> None:
    first, second = (SparkStory(1, odradek_node).play() for _ in range(2))
    assert first.acknowledged_commits >= 10
    assert (first.digest, first.events) == (second.digest, second.events)


def catch(start: int) -> Outcome:
    for seed in range(start, start + SEEDS_TO_CATCH_A_BUG):
        outcome = SparkStory(seed, odradek_node).play()
        if outcome.violations:
            return outcome
    pytest.fail(f"nothing was found in {SEEDS_TO_CATCH_A_BUG} seeds")


Plant = Callable[[pytest.MonkeyPatch], None]


def decides_without_fencing(patch: pytest.MonkeyPatch) -> None:
    """Every decider has an id of its own, so that nobody is in anybody's way."""
    numbers = iter(range(1_000_000))

    async def take_charge(self: Decider) -> Any:
        await self._resign()
        own = f"{coordinator_id(self._prefix, self._stream)}-{next(numbers)}"
        self._producer = TransactionalProducer(self._client, own, transaction_timeout_ms=10_000)
        await self._producer.init_transactions()
        return await self._ledger.entry(self._stream)

    patch.setattr(Decider, "_take_charge", take_charge)


def looks_before_it_takes_its_id(patch: pytest.MonkeyPatch) -> None:
    begin = Attempt.begin.__func__  # type: ignore[attr-defined]

    class Known:
        def __init__(self, entry: Any) -> None:
            self._entry = entry

        async def entry(self, stream: Any) -> Any:
            return self._entry

    async def early(cls: Any, client: Any, ledger: Any, slots: Any, task: Any, codec: int) -> Any:
        known = Known(await ledger.entry(task.stream))
        return await begin(cls, client, known, slots, task, codec)

    patch.setattr(Attempt, "begin", classmethod(early))


def never_sweeps(patch: pytest.MonkeyPatch) -> None:
    async def sweep(*_: Any, **__: Any) -> None:
        return

    patch.setattr(Decider, "_sweep", sweep)


def sweeps_runs_that_may_decide(patch: pytest.MonkeyPatch) -> None:
    plan_sweep = deciding.plan_sweep
    patch.setattr(deciding, "plan_sweep", lambda *args: plan_sweep(*args)._replace(unknown_runs=[]))


def uses_one_slot_for_everything(patch: pytest.MonkeyPatch) -> None:
    def take(self: Slots, task: Any) -> str:
        return participant_id(self._prefix, task.stream, task.run, self._worker, 0)

    patch.setattr(Slots, "take", take)


def says_once_that_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """What the network loses is not said again; it loses one in ten."""
    numbers = iter(range(1, 1_000_000))

    async def commit(client: Any, participant: Any, run: str, timeout_s: float) -> None:
        if next(numbers) % 10 == 0:
            return
        try:
            await client.call_coordinator(participant.transactional_id, *_end(participant), key_type=1)
        except (OSError, RefusedError):
            return

    patch.setattr(finishing, "commit_one", commit)


def _end(participant: Any) -> tuple[int, Any]:
    api_key = deciding.ApiKey.END_TXN
    request = deciding.request_types(api_key).EndTxnRequest(
        transactional_id=participant.transactional_id,
        producer_id=participant.producer_id,
        producer_epoch=participant.producer_epoch,
        committed=True,
    )
    return api_key, request


def decides_again_what_is_decided(patch: pytest.MonkeyPatch) -> None:
    judge = deciding.judge

    def careless(entry: Any, *args: Any, **options: Any) -> Any:
        found = judge(entry, *args, **options)
        if isinstance(found, Finish) and entry.run != args[1]:
            return Propose(entry)
        return found

    async def begin(cls: Any, client: Any, ledger: Any, slots: Any, task: Any, codec: int) -> Any:
        return await original(cls, client, _Undecided(), slots, task, codec)

    original = Attempt.begin.__func__  # type: ignore[attr-defined]
    patch.setattr(deciding, "judge", careless)
    patch.setattr(Attempt, "begin", classmethod(begin))


class _Undecided:
    async def entry(self, stream: Any) -> None:
        return None


def decides_after_the_ends(patch: pytest.MonkeyPatch) -> None:
    """Commits the participants first, and tells of it later."""
    decide = Decider._decide

    async def early(self: Decider, found: Any, batch: Any) -> Any:
        await self._check_open(batch.participants)
        for participant in batch.participants:
            await finishing.commit_one(self._client, participant, batch.run, 60)

        async def nothing(_: Iterable[Any]) -> None:
            return

        self._check_open = nothing  # type: ignore[method-assign]
        return await decide(self, found, batch)

    patch.setattr(Decider, "_decide", early)


PLANTS: dict[Plant, tuple[int, str]] = {
    decides_without_fencing: (0, "lost|duplicated|was decided after"),
    looks_before_it_takes_its_id: (8, "stuck"),
    never_sweeps: (0, "stuck"),
    sweeps_runs_that_may_decide: (3, "lost"),
    uses_one_slot_for_everything: (0, "the last run failed"),
    says_once_that_it_is_committed: (0, "lost"),
    decides_again_what_is_decided: (1, "duplicated"),
    decides_after_the_ends: (0, "duplicated"),
}
"""From which seed on to look, since some are met rarely, and what is seen, as a regular expression."""


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_protocol_without_one_of_its_rules_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    start, sign = PLANTS[plant]
    outcome = catch(start)
    assert any(re.search(sign, violation) for violation in outcome.violations), outcome.violations
    assert f"odradek sim replay {outcome.seed} --pipelines" in report(outcome, story=StoryKind.PIPELINES)
