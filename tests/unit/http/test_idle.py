"""How idle the loop is: a thread that works is not, one that waits is."""

import time

from odradek.http.idle import Idle


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_thread_that_waits_is_idle() -> None:
    idle = Idle()
    time.sleep(0.3)
    assert idle.share() > 0.9


def test_a_thread_that_works_is_not_idle() -> None:
    idle = Idle()
    began = time.monotonic()
    work(0.3)
    worked_s = time.monotonic() - began  # longer than that, where others have the processor
    share = idle.share()
    assert abs(share - (1 - 0.3 / worked_s)) < 0.1


def test_what_was_long_ago_does_not_count(monkeypatch) -> None:
    now = [0.0, 0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "thread_time", lambda: now[1])
    idle = Idle()
    for _ in range(8):  # a scrape every quarter of a minute; all of it worked
        now[0] += 15
        now[1] += 15
        assert idle.share() == 0
    for share in (1 / 4, 2 / 4, 3 / 4, 1):  # then it rests
        now[0] += 15
        assert idle.share() == share
    for _ in range(1_000):
        now[0] += 0.01
        assert idle.share() == 1
