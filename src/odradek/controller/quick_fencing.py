"""Fencing a broker before its session ends: a broken connection is news, and never proof. Pure.

    a connection that had proved this incarnation breaks  ->  Dial
    the dial is refused                                   ->  Dial again, 100 ms later
    that one is refused, too                              ->  Fence

A heartbeat, a new incarnation or a dial that ends in any other way stops this: then only the end of the
session fences. A proxy in front of a living broker refuses, too. So a broker that sends a heartbeat after it
was fenced is not fenced quickly again for the length of a session; `odradek.quick.fencing=false` switches all
of it off. A machine belongs to one term of an active controller. A new controller knows no connections yet,
and gives every broker a full session beside it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.core.configs import NodeConfig

DIALS_APART_MS = 100


class ConnectionProved(NamedTuple):
    """A broker named its current epoch on a connection. `connection` tells connections apart."""

    broker_id: int
    broker_epoch: int
    connection: int


class ConnectionBroke(NamedTuple):
    connection: int


class DialRefused(NamedTuple):
    """Nobody listens at the broker's address."""

    broker_id: int
    number: int


class DialOther(NamedTuple):
    """A dial that was answered, timed out or failed in any other way."""

    broker_id: int
    number: int


class Heartbeat(NamedTuple):
    broker_id: int
    broker_epoch: int


class Tick(NamedTuple):
    """Time has passed: due at `next_tick_ms`."""


Event = ConnectionProved | ConnectionBroke | DialRefused | DialOther | Heartbeat | Tick


class Dial(NamedTuple):
    """Connect to the broker's listener, now; the answer names the same number."""

    broker_id: int
    number: int


class Fence(NamedTuple):
    """Write down that this incarnation is fenced (`Controller.fence`)."""

    broker_id: int
    broker_epoch: int


Effect = Dial | Fence


class _Trusted(NamedTuple):
    """Nothing is wrong; before `barred_until_ms` nothing is suspected either."""

    broker_epoch: int
    barred_until_ms: int = 0


class _Dialling(NamedTuple):
    broker_epoch: int
    number: int
    is_second: bool


class _RefusedOnce(NamedTuple):
    broker_epoch: int
    dial_again_ms: int


class _Fenced(NamedTuple):
    broker_epoch: int


_State = _Trusted | _Dialling | _RefusedOnce | _Fenced


class QuickFencing:
    """`step` takes what happened and gives what to do. Times are those of sessions: they never go back."""

    __slots__ = ("_brokers", "_connections", "_dials", "_is_on", "_session_ms")

    def __init__(self, *, is_on: bool, session_ms: int) -> None:
        self._is_on = is_on
        self._session_ms = session_ms
        self._brokers: dict[int, _State] = {}
        self._connections: dict[int, tuple[int, int]] = {}
        self._dials = 0

    @classmethod
    def of(cls, config: NodeConfig) -> "QuickFencing":
        return cls(
            is_on=config.bool("odradek.quick.fencing"), session_ms=config.int("broker.session.timeout.ms")
        )

    @property
    def next_tick_ms(self) -> int | None:
        """When the next tick is due, if any is."""
        return min(
            (s.dial_again_ms for s in self._brokers.values() if isinstance(s, _RefusedOnce)), default=None
        )

    def step(self, event: Event, now_ms: int) -> Sequence[Effect]:
        if not self._is_on:
            return ()
        match event:
            case ConnectionProved(broker_id, broker_epoch, connection):
                self._connections[connection] = (broker_id, broker_epoch)
                self._heard(broker_id, broker_epoch, now_ms)
            case Heartbeat(broker_id, broker_epoch):
                self._heard(broker_id, broker_epoch, now_ms)
            case ConnectionBroke(connection):
                return self._broke(self._connections.pop(connection, None), now_ms)
            case DialRefused(broker_id, number):
                return self._refused(broker_id, number, now_ms)
            case DialOther(broker_id, number):
                state = self._brokers.get(broker_id)
                if isinstance(state, _Dialling) and state.number == number:
                    self._brokers[broker_id] = _Trusted(state.broker_epoch)
            case Tick():
                return self._dial_again(now_ms)
        return ()

    def _heard(self, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        state = self._brokers.get(broker_id)
        if state is None or state.broker_epoch < broker_epoch:
            barred_until_ms = state.barred_until_ms if isinstance(state, _Trusted) else 0
            self._brokers[broker_id] = _Trusted(broker_epoch, barred_until_ms)
        elif state.broker_epoch > broker_epoch:
            return  # an earlier incarnation
        elif isinstance(state, _Fenced):
            self._brokers[broker_id] = _Trusted(broker_epoch, now_ms + self._session_ms)
        elif not isinstance(state, _Trusted):
            self._brokers[broker_id] = _Trusted(broker_epoch)

    def _broke(self, proved: tuple[int, int] | None, now_ms: int) -> Sequence[Effect]:
        if proved is None:
            return ()
        broker_id, broker_epoch = proved
        state = self._brokers[broker_id]
        if not isinstance(state, _Trusted) or state.broker_epoch != broker_epoch:
            return ()
        if now_ms < state.barred_until_ms:
            return ()
        return (self._dial(broker_id, broker_epoch, is_second=False),)

    def _dial_again(self, now_ms: int) -> Sequence[Effect]:
        due = [
            (broker_id, state.broker_epoch)
            for broker_id, state in self._brokers.items()
            if isinstance(state, _RefusedOnce) and now_ms >= state.dial_again_ms
        ]
        return [self._dial(*broker, is_second=True) for broker in due]

    def _dial(self, broker_id: int, broker_epoch: int, *, is_second: bool) -> Dial:
        self._dials += 1
        self._brokers[broker_id] = _Dialling(broker_epoch, self._dials, is_second)
        return Dial(broker_id, self._dials)

    def _refused(self, broker_id: int, number: int, now_ms: int) -> Sequence[Effect]:
        state = self._brokers.get(broker_id)
        if not isinstance(state, _Dialling) or state.number != number:
            return ()
        if not state.is_second:
            self._brokers[broker_id] = _RefusedOnce(state.broker_epoch, now_ms + DIALS_APART_MS)
            return ()
        self._brokers[broker_id] = _Fenced(state.broker_epoch)
        return (Fence(broker_id, state.broker_epoch),)
