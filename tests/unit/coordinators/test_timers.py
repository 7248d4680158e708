"""Deadlines come up in order, once, and move without leaving anything behind."""

from odradek.coordinators.timers import Timers


def due(timers: Timers[str], now_ms: int) -> list[str]:
    found = []
    while (key := timers.pop(now_ms)) is not None:
        found.append(key)
    return found


def test_deadlines_come_up_in_order_of_time() -> None:
    timers: Timers[str] = Timers()
    for key, at in [("c", 30), ("a", 10), ("b", 20)]:
        timers.schedule(key, at)
    assert timers.next_deadline_ms() == 10
    assert due(timers, 25) == ["a", "b"]
    assert timers.next_deadline_ms() == 30
    assert due(timers, 29) == []
    assert due(timers, 30) == ["c"]
    assert timers.next_deadline_ms() is None


def test_a_deadline_moved_back_does_not_come_up_early() -> None:
    timers: Timers[str] = Timers()
    timers.schedule("a", 10)
    timers.schedule("a", 50)
    assert due(timers, 49) == []
    assert timers.next_deadline_ms() == 50
    assert due(timers, 50) == ["a"]


def test_a_deadline_moved_forward_comes_up_once() -> None:
    timers: Timers[str] = Timers()
    timers.schedule("a", 50)
    timers.schedule("a", 10)
    assert due(timers, 100) == ["a"]


def test_a_cancelled_deadline_never_comes_up() -> None:
    timers: Timers[str] = Timers()
    timers.schedule("a", 10)
    timers.cancel("a")
    timers.cancel("a")
    assert timers.next_deadline_ms() is None
    assert due(timers, 100) == []


def test_a_key_scheduled_anew_ignores_its_old_entry() -> None:
    timers: Timers[str] = Timers()
    timers.schedule("a", 10)
    timers.cancel("a")
    timers.schedule("a", 40)
    assert due(timers, 39) == []
    assert due(timers, 40) == ["a"]


def test_many_moves_keep_one_entry_per_key() -> None:
    timers: Timers[str] = Timers()
    for now in range(1_000):
        timers.schedule("a", now + 100)
        timers.schedule("b", 5_000 - now)
        due(timers, now)
    assert len(timers) == 2
    assert len(timers._heap) <= 1_002
    due(timers, 10_000)
    assert timers._heap == []
