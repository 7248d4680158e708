"""The requests that were found to keep everybody waiting, by their names; and what they left in the log."""

import logging

import pytest

from odradek.wire.api_keys import ApiKey
from tests.hostile.cases import ask, measure, taken, twenty_slices
from tests.hostile.expressions import long_names, subscribe
from tests.hostile.names import RECORDS
from tests.hostile.rows import ROWS, Row
from tests.hostile.world import StagedWorld
from tests.support.produce import produce_values
from tests.support.raw import request_bytes
from tests.support.stored import fetch_values

MOST_LINES = 20
PARKED_CONNECTIONS, PARKED_EACH = 8, 50


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_request_that_kept_everybody_waiting(world: StagedWorld, row: Row) -> None:
    twenty_slices(world, row.case).check()


def test_invalid_names_do_not_fill_the_log(world: StagedWorld, caplog: pytest.LogCaptureFixture) -> None:
    (row,) = (row for row in ROWS if row.name == "metadata-of-invalid-names")
    with caplog.at_level(logging.INFO):
        ask(world, row.case, 200)
    assert len(caplog.records) <= MOST_LINES, f"{len(caplog.records)} lines for one request of 200 names"


def test_an_expression_is_resolved_in_slices(world: StagedWorld) -> None:
    """The group's expressions are resolved after the heartbeat is answered, against all topics."""
    stage, work = world.stage, world.stage.work
    with stage.client() as client:
        world.create_topics(client, [name for name in long_names(2) if name not in world.topic_ids])
        subscribe(world, client, world.fresh("warm"), 1)
        stage.wait_until_idle()
        with work.counting():
            subscribe(world, client, world.fresh("matching"), 25)
            stage.wait_until_idle()
            stage.loop.jump()
            stage.wait_until_idle()
            taken(world, "an expression").check()


def test_parked_fetches_are_woken_in_bounded_groups(world: StagedWorld) -> None:
    """One record for one partition that very many wait on."""
    stage = world.stage
    topic = world.fresh("awaited")
    values = fetch_values([(topic, 0, 0)], max_wait_ms=30_000, min_bytes=1)
    parked = request_bytes(ApiKey.FETCH, 12, values) * PARKED_EACH
    clients = [stage.connect() for _ in range(PARKED_CONNECTIONS)]
    try:
        world.create_topics(clients[0], [topic])
        for client in clients:
            client.send(parked)
        stage.wait_until_idle()
        produced = measure(
            world, "a produce", request_bytes(ApiKey.PRODUCE, 9, produce_values(topic, RECORDS))
        )
        answered = sum(1 for client in clients for _ in range(PARKED_EACH) if client.answer() is not None)
        assert answered == PARKED_CONNECTIONS * PARKED_EACH
        produced.check(connections=PARKED_CONNECTIONS + 1)
    finally:
        for client in clients:
            stage.disconnect(client)
