"""While hostile requests are worked off, short ones of others are answered within a few short turns."""

from contextlib import ExitStack

import pytest

from odradek.wire.api_keys import ApiKey
from tests.hostile.cases import Case
from tests.hostile.limits import PING_TURNS, turn_limit
from tests.hostile.pings import Pinger, short_requests
from tests.hostile.rows import ROWS
from tests.hostile.shapes import Shape
from tests.hostile.stage import MOST_TURNS
from tests.hostile.world import StagedWorld

CASES = [
    next(row.case for row in ROWS if row.name == name)
    for name in (
        "produce-of-null-records-to-one-partition",
        "find-coordinator-of-one-key-repeated",
        "write-txn-markers-of-one-partition-repeated",
        "offset-commit",
        "metadata-of-unknown-names",
    )
]
CASES.append(Case(ApiKey.FETCH, 18, Shape("many", ("topics", "partitions"))))
CROWDED = CASES[:2]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_short_requests_do_not_queue_behind_a_long_one(world: StagedWorld, case: Case) -> None:
    check(world, case, 1, 1_000)


@pytest.mark.parametrize("case", CROWDED, ids=str)
def test_fifty_hostile_connections_delay_others_as_little_as_one(world: StagedWorld, case: Case) -> None:
    check(world, case, 50, 400)


def check(world: StagedWorld, case: Case, connections: int, entries: int) -> None:
    """Ask on, a short request after the other, until every hostile connection has its answer."""
    stage = world.stage
    with ExitStack() as stack:
        honest = stack.enter_context(stage.client())
        asks = short_requests(world, honest)
        for ask in asks.values():
            assert stage.ask(honest, ask) is not None
        hostile = [stack.enter_context(stage.client()) for _ in range(connections)]
        frames = [case.frame(world, client, entries) for client in hostile]
        assert stage.ask(hostile[0], case.frame(world, hostile[0], 1)) is not None
        waiting = dict.fromkeys(hostile)
        with stage.work.counting():
            pinger = Pinger(stage, honest, asks)
            for client, frame in zip(hostile, frames, strict=True):
                client.send(frame)
            for _ in range(MOST_TURNS):
                stage.turn()
                pinger.turned()
                for client in [client for client in waiting if client.answer() or client.closed]:
                    del waiting[client]
                if not waiting and pinger.count >= 2 * len(asks):
                    break
            assert not waiting, f"{len(waiting)} of {connections} hostile requests were never answered"
        for name, waits in pinger.waits.items():
            turns, events = max(wait.turns for wait in waits), max(wait.events for wait in waits)
            assert turns <= PING_TURNS, f"{name} was answered after {turns} turns, allowed {PING_TURNS}"
            allowed = turns * turn_limit(connections + 1)
            assert events <= allowed, (
                f"{name} waited for {events:,} events of others in {turns} turns, allowed {allowed:,}"
            )
