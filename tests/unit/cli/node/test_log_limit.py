"""One cause cannot fill the log: messages beyond its share are counted, and the count is logged."""

import asyncio
import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.cli.node.log_limit import MAX_CAUSES, MAX_NOTES, MAX_WARNINGS, LogLimit
from odradek.cli.node.log_lines import set_up_logging
from odradek.sim.world.loop import SimLoop
from tests.support.node import running
from tests.support.raw import Connection


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield io.StringIO()
    logger.handlers[:] = handlers
    logger.setLevel(level)


def lines(out: io.StringIO) -> list[str]:
    found = [re.sub(r"^\[.*?\] ", "", line) for line in out.getvalue().splitlines()]
    out.seek(0)
    out.truncate()
    return found


def warn(number: int, peer: str | None = None) -> None:
    logging.getLogger("odradek.x").warning("Frame %d", number, extra={"peer": peer})


def acting(out: io.StringIO) -> LogLimit:
    limit = set_up_logging("text", out)
    limit._is_on = True
    return limit


def test_a_flood_of_warnings_is_counted_and_the_count_is_told(out: io.StringIO) -> None:
    limit = acting(out)
    for number in range(MAX_WARNINGS + 7):
        warn(number)
    assert lines(out) == [f"WARN Frame {number} (odradek.x)" for number in range(MAX_WARNINGS)]
    limit.end_window()
    assert lines(out) == ["WARN 7 more within 10 s, not shown: 'Frame %d' (odradek.cli.node.log_limit)"]
    warn(99)
    limit.end_window()
    assert lines(out) == ["WARN Frame 99 (odradek.x)"], "the next window is a new one"


def test_a_client_that_floods_does_not_hide_another(out: io.StringIO) -> None:
    limit = acting(out)
    for number in range(1000):
        warn(number, "10.0.0.1")
    lines(out)
    warn(5, "10.0.0.2")
    assert lines(out) == ["WARN Frame 5 (odradek.x)"]
    limit.end_window()
    assert lines(out) == [
        "WARN 990 more within 10 s from 10.0.0.1, not shown: 'Frame %d' (odradek.cli.node.log_limit)"
    ]


def test_tracebacks_and_notes_are_limited_too(out: io.StringIO) -> None:
    limit = acting(out)
    for _ in range(MAX_NOTES + 5):
        try:
            raise ValueError("bad")
        except ValueError:
            logging.getLogger("odradek.x").exception("failed")
        logging.getLogger("odradek.x").info("closed")
    found = lines(out)
    assert sum("ERROR failed" in line for line in found) == MAX_WARNINGS
    assert sum("ValueError: bad" in line for line in found) == MAX_WARNINGS
    assert sum("INFO closed" in line for line in found) == MAX_NOTES
    limit.end_window()
    assert [line.split(" more")[0] for line in lines(out)] == [
        f"WARN {MAX_NOTES + 5 - MAX_WARNINGS}",
        "WARN 5",
    ]


def test_causes_are_bounded_in_number(out: io.StringIO) -> None:
    limit = acting(out)
    for number in range(10 * MAX_CAUSES):
        warn(number, f"peer {number}")
    assert len(limit._counts) == MAX_CAUSES + 1
    assert len(lines(out)) == MAX_CAUSES + MAX_WARNINGS


def test_nothing_is_held_back_before_the_node_is_ready(out: io.StringIO) -> None:
    set_up_logging("text", out)
    for number in range(100):
        warn(number)
    assert len(lines(out)) == 100


def test_the_count_is_told_when_the_window_ends_and_nothing_else_happens(out: io.StringIO) -> None:
    limit = set_up_logging("text", out)
    loop = SimLoop()
    try:
        task = loop.create_task(limit.run())
        loop.run_until_complete(_flood())
        assert sum("Frame" in line for line in lines(out)) == MAX_WARNINGS
        loop.run_until_complete(_sleep(10.5))
        assert lines(out) == ["WARN 40 more within 10 s, not shown: 'Frame %d' (odradek.cli.node.log_limit)"]
        task.cancel()
    finally:
        loop.close()


async def _flood() -> None:
    await asyncio.sleep(0)
    for number in range(50):
        warn(number)


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def test_a_client_of_bad_frames_gets_a_few_lines_and_a_count(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        for _ in range(60):
            with Connection(node.bootstrap) as connection:
                connection.socket.sendall(b"\0\0\0\1x")
                assert connection.closed_by_peer()
    counted = re.findall(
        r"WARN (\d+) more within 10 s from 127\.0\.0\.1, not shown: 'Closing conn", node.log()
    )
    shown = len(re.findall(r"WARN Closing connection", node.log()))
    assert shown + sum(map(int, counted)) == 60
    assert counted and shown <= MAX_WARNINGS * (len(counted) + 1), "so many in each window"
