"""Fencing before a session ends: only on a broken connection, two refusals and silence."""

from typing import Any

import pytest

from odradek.controller.quick_fencing import (
    ConnectionBroke,
    ConnectionProved,
    Dial,
    DialOther,
    DialRefused,
    Effect,
    Event,
    Fence,
    Heartbeat,
    QuickFencing,
    Tick,
)
from odradek.core.configs import BROKER_KEYS, NodeConfig
from odradek.metadata.records import FENCE, BrokerRegistrationChangeRecord
from odradek.runtime.slices import at_once
from tests.unit.controller.harness import Harness

SESSION_MS = 9000
EPOCH = 40


class Play:
    """A machine and its clock. Dials are remembered, so that a test answers the last one."""

    def __init__(self, **settings: str) -> None:
        config, _ = NodeConfig.from_sources({}, settings)
        self.machine = QuickFencing.of(config)
        self.now_ms = 100_000
        self.dial: Dial | None = None

    def step(self, event: Event) -> list[Effect]:
        effects = list(self.machine.step(event, self.now_ms))
        for effect in effects:
            if isinstance(effect, Dial):
                self.dial = effect
        return effects

    def prove(self, broker: int = 2, epoch: int = EPOCH, connection: int = 7) -> None:
        assert self.step(ConnectionProved(broker, epoch, connection)) == []

    def refuse(self) -> list[Effect]:
        assert self.dial is not None
        return self.step(DialRefused(self.dial.broker_id, self.dial.number))

    def other(self) -> list[Effect]:
        assert self.dial is not None
        return self.step(DialOther(self.dial.broker_id, self.dial.number))

    def later(self, by_ms: int) -> list[Effect]:
        self.now_ms += by_ms
        return self.step(Tick())

    def suspect(self) -> None:
        self.prove()
        assert [type(e) for e in self.step(ConnectionBroke(7))] == [Dial]

    def fence(self) -> list[Effect]:
        self.suspect()
        assert self.refuse() == []
        assert [type(e) for e in self.later(100)] == [Dial]
        return self.refuse()


def test_a_broken_connection_two_refusals_100_ms_apart_and_silence_fence_a_broker() -> None:
    p = Play()
    assert p.fence() == [Fence(2, EPOCH)]


def test_a_connection_that_proved_no_incarnation_is_no_news() -> None:
    assert Play().step(ConnectionBroke(7)) == []


def test_a_connection_of_an_earlier_incarnation_is_no_news() -> None:
    p = Play()
    p.prove(epoch=EPOCH, connection=7)
    p.prove(epoch=EPOCH + 5, connection=8)
    assert p.step(ConnectionBroke(7)) == []
    assert [type(e) for e in p.step(ConnectionBroke(8))] == [Dial]


def test_one_refusal_proves_nothing() -> None:
    p = Play()
    p.suspect()
    assert p.refuse() == []
    assert p.refuse() == [], "the same dial is answered once"


def test_the_second_dial_comes_100_ms_after_the_first_was_refused() -> None:
    p = Play()
    p.suspect()
    p.now_ms += 30
    p.refuse()
    assert p.machine.next_tick_ms == p.now_ms + 100
    assert p.later(99) == []
    assert [type(e) for e in p.later(1)] == [Dial]
    assert p.machine.next_tick_ms is None


@pytest.mark.parametrize("dials", [1, 2])
def test_anything_but_a_refusal_waits_for_the_session(dials: int) -> None:
    p = Play()
    p.suspect()
    if dials == 2:
        p.refuse()
        p.later(100)
    assert p.other() == []
    assert p.refuse() == [], "that dial was answered"
    assert p.later(10_000) == []


@pytest.mark.parametrize("dials", [0, 1, 2])
def test_a_heartbeat_ends_the_suspicion(dials: int) -> None:
    p = Play()
    p.suspect()
    if dials >= 1:
        p.refuse()
    if dials == 2:
        p.later(100)
    assert p.step(Heartbeat(2, EPOCH)) == []
    assert p.refuse() == []
    assert p.later(10_000) == []


def test_a_new_incarnation_ends_the_suspicion() -> None:
    p = Play()
    p.suspect()
    p.refuse()
    p.prove(epoch=EPOCH + 5, connection=9)
    assert p.later(100) == []


def test_a_heartbeat_of_an_earlier_incarnation_ends_nothing() -> None:
    p = Play()
    p.suspect()
    p.refuse()
    assert p.step(Heartbeat(2, EPOCH - 5)) == []
    p.later(100)
    assert p.refuse() == [Fence(2, EPOCH)]


def test_a_second_broken_connection_begins_no_second_suspicion() -> None:
    p = Play()
    p.prove(connection=8)
    p.suspect()
    assert p.step(ConnectionBroke(8)) == []
    p.refuse()
    p.later(100)
    assert p.refuse() == [Fence(2, EPOCH)]


def test_brokers_are_suspected_on_their_own() -> None:
    p = Play()
    p.prove(broker=2, connection=7)
    p.prove(broker=3, epoch=50, connection=8)
    (first,) = p.step(ConnectionBroke(7))
    (second,) = p.step(ConnectionBroke(8))
    assert isinstance(first, Dial)
    assert isinstance(second, Dial)
    assert (first.broker_id, second.broker_id) == (2, 3)
    p.step(DialRefused(2, first.number))
    assert p.step(DialRefused(2, second.number)) == [], "an answer to another broker's dial"
    p.step(DialRefused(3, second.number))
    assert len(p.later(100)) == 2


def test_after_a_wrong_fencing_a_broker_is_not_fenced_quickly_for_a_session() -> None:
    p = Play()
    p.fence()
    p.now_ms += 500
    p.step(Heartbeat(2, EPOCH))  # it lived: something refused in its place
    p.prove(connection=10)
    assert p.step(ConnectionBroke(10)) == []
    p.now_ms += SESSION_MS - 1
    p.prove(connection=11)
    assert p.step(ConnectionBroke(11)) == []
    p.now_ms += 1
    p.prove(connection=12)
    assert [type(e) for e in p.step(ConnectionBroke(12))] == [Dial]


def test_a_wrong_fencing_bars_the_next_incarnation_as_well() -> None:
    """Whatever refused in the place of the broker is still there."""
    p = Play()
    p.fence()
    p.step(Heartbeat(2, EPOCH))
    p.prove(epoch=EPOCH + 9, connection=10)
    assert p.step(ConnectionBroke(10)) == []


def test_a_session_is_as_long_as_the_setting_says() -> None:
    p = Play(**{"broker.session.timeout.ms": "3000"})
    p.fence()
    p.step(Heartbeat(2, EPOCH))
    p.now_ms += 3000
    p.prove(connection=12)
    assert [type(e) for e in p.step(ConnectionBroke(12))] == [Dial]


def test_a_right_fencing_bars_nothing_for_the_next_incarnation() -> None:
    p = Play()
    p.fence()
    p.step(Heartbeat(2, EPOCH + 9))
    p.prove(epoch=EPOCH + 9, connection=10)
    assert [type(e) for e in p.step(ConnectionBroke(10))] == [Dial]


def test_a_fenced_broker_is_fenced_once() -> None:
    p = Play()
    p.prove(connection=8)
    p.fence()
    assert p.step(ConnectionBroke(8)) == []


def test_the_setting_switches_it_off() -> None:
    p = Play(**{"odradek.quick.fencing": "false"})
    p.prove()
    assert p.step(ConnectionBroke(7)) == []
    assert p.later(10_000) == []


def test_the_setting_is_on_unless_it_is_switched_off_and_a_restart_takes_it_over() -> None:
    key = BROKER_KEYS["odradek.quick.fencing"]
    assert (key.type, key.default, key.read_only, key.acts) == ("boolean", "true", True, True)


# --- what the controller makes of it ------------------------------------------------------------------


def fence(h: Harness, broker_id: int, epoch: int) -> list[Any]:
    h.apply(at_once(h.controller.fence(broker_id, epoch)))
    return h.records


def test_the_controller_fences_the_broker_and_moves_its_leaders() -> None:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [2, 3]})
    epoch = h.image.brokers[2].epoch
    assert fence(h, 2, epoch - 1) == [], "that incarnation is gone"
    records = fence(h, 2, epoch)
    assert records[-1] == BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, fenced=FENCE)
    assert h.image.topics_by_name["t"].partitions[0].leader == 3
    assert fence(h, 2, epoch) == [], "it is fenced already"
    assert fence(h, 9, epoch) == [], "nobody knows it"


def test_a_broker_that_was_fenced_quickly_may_be_registered_again_at_once() -> None:
    h = Harness()
    h.start_broker(2)
    fence(h, 2, h.image.brokers[2].epoch)
    assert h.register(2, process=5).error_code == 0


def test_a_broker_that_was_fenced_wrongly_is_back_with_its_next_heartbeat() -> None:
    h = Harness()
    h.start_broker(2)
    h.create("t", -1, -1, assignments={0: [2]})
    fence(h, 2, h.image.brokers[2].epoch)
    assert not h.heartbeat(2).is_fenced
    assert h.image.topics_by_name["t"].partitions[0].leader == 2
