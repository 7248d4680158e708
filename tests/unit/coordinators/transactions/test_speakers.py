"""The newest connection of each producer: what is noted, what is dropped, and that it is limited."""

from typing import Any

import pytest

from odradek.coordinators.transactions import speakers
from odradek.coordinators.transactions.speakers import Speakers
from odradek.core.errors import ErrorCode, ProtocolError
from tests.unit.coordinators.transactions.harness import ABORT, COMMIT, A, B, Harness

E = ErrorCode


def test_an_older_connection_is_refused_and_the_newest_is_not() -> None:
    heard = Speakers()
    heard.heard("id", 2)
    heard.heard("id", 1)
    heard.require_newest("id", 2)
    heard.require_newest("id", 3)
    heard.require_newest("other", 1)
    with pytest.raises(ProtocolError, match="'id'"):
        heard.require_newest("id", 1)
    heard.forget("id")
    heard.require_newest("id", 1)


def test_those_that_spoke_first_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speakers, "MAX_SPEAKERS", 3)
    heard = Speakers()
    for name in "abcd":
        heard.heard(name, 2)
    assert len(heard) == 3
    heard.require_newest("a", 1)
    for name in "bcd":
        with pytest.raises(ProtocolError):
            heard.require_newest(name, 1)


def refused(h: Harness, step: str) -> None:
    """The first connection speaks after a newer one has: what it says was given up."""
    producer = h.txn().client
    ask: Any = h.add if step == "add" else h.end
    with pytest.raises(ProtocolError):
        ask(producer, B if step == "add" else COMMIT, version=0, connection=1)


@pytest.mark.parametrize("step", ["add", "end"])
def test_a_producer_that_begins_speaks_by_its_connection(h: Harness, step: str) -> None:
    h.producer(connection=2)
    refused(h, step)


@pytest.mark.parametrize("step", ["add", "end"])
def test_a_producer_that_adds_speaks_by_its_connection(h: Harness, step: str) -> None:
    assert h.add(h.producer(), A, version=0, connection=2) is E.NONE
    refused(h, step)


@pytest.mark.parametrize("step", ["add", "end"])
def test_a_producer_that_ends_speaks_by_its_connection(h: Harness, step: str) -> None:
    producer = h.producer()
    assert h.add(producer, A, version=0) is E.NONE
    assert h.end_code(producer, ABORT, version=0, connection=2) is E.NONE
    refused(h, step)


def test_with_an_epoch_per_transaction_the_epoch_tells(h: Harness) -> None:
    producer = h.producer(connection=2)
    assert h.add(producer, A, version=2, connection=1) is E.NONE


def test_an_id_that_is_gone_is_forgotten(h: Harness) -> None:
    h.producer(connection=2)
    assert len(h.shard.speakers) == 1
    h.run(lambda: h.shard.replay("id", None, 0, -1))
    assert len(h.shard.speakers) == 0
