"""The demo without Spark: its orders, proof, kills, processes, picture, and what is shown of it."""

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.terminal.demo_view import DemoView
from odradek.cli.terminal.terminal import Terminal
from odradek.spark.demo.killing import DECIDED, WRITTEN, describe_query, plan_kills
from odradek.spark.demo.orders import (
    PRODUCTS,
    REGIONS,
    WATERMARK_MS,
    WINDOW_MS,
    Order,
    Revenue,
    Window,
    enrich,
    generate,
    parse_order,
    sum_windows,
)
from odradek.spark.demo.picture import svg
from odradek.spark.demo.processes import Child, descendants
from odradek.spark.demo.proof import Contents, Proof, prove, tally
from odradek.spark.demo.story import BROKER, DRIVER, Batch, Counts, Kill, Story
from tests.support.processes import wait_until_gone

MADE = list(generate(2_000, seed=7))


def contents(**changes: Any) -> Contents:
    """Topics with nothing wrong in them, but for what is changed."""
    closed, _ = sum_windows(MADE)
    good = Contents(list(MADE), [enrich(order) for order in MADE], list(closed.items()), 0, 0)
    return good._replace(**changes)


# Orders


def test_the_same_seed_makes_the_same_orders() -> None:
    assert list(generate(2_000, seed=7)) == MADE
    assert list(generate(2_000, seed=8)) != MADE
    assert [order.order for order in MADE] == list(range(2_000))
    assert [parse_order(order.value) for order in MADE] == MADE


def test_no_order_is_later_than_the_watermark_bears() -> None:
    """Even where one partition is read two pieces ahead of another."""
    for i, order in enumerate(MADE[:-1]):
        ahead = max(other.at_ms for other in MADE[max(0, i - 100) : i + 1])
        assert ahead - order.at_ms < WATERMARK_MS / 2


def test_the_last_order_closes_the_windows_of_all_others() -> None:
    closed, still_open = sum_windows(MADE)
    assert still_open == 1
    assert sum(revenue.orders for revenue in closed.values()) == len(MADE) - 1


def test_windows_are_summed_by_region() -> None:
    first = Order(0, "c", "DE", "p1", 2, 0)
    orders = [
        first,
        first._replace(country="AT", quantity=1),
        first._replace(country="US", product="p3"),
        first._replace(at_ms=WINDOW_MS),
        first._replace(at_ms=WATERMARK_MS + WINDOW_MS),
    ]
    closed, still_open = sum_windows(orders)
    assert closed == {Window(0, "Europe"): Revenue(2, 750), Window(0, "Americas"): Revenue(1, 1_980)}
    assert still_open == 2
    assert {REGIONS[o.country] for o in MADE} == set(REGIONS.values())
    assert {o.product for o in MADE} == set(PRODUCTS)


# The proof


def test_what_is_as_it_has_to_be_is_proven() -> None:
    proof = prove(MADE, contents())
    assert (proof.findings, proof.duplicates, proof.lost) == ([], 0, 0)
    assert (proof.inputs.found, proof.enriched.found) == (2_000, 2_000)
    assert proof.windows.found > 20
    assert proof.windows_open == 1


WINDOWS = list(sum_windows(MADE)[0].items())
GOOD = contents()


@pytest.mark.parametrize(
    ("planted", "finding", "duplicates", "lost"),
    [
        (contents(enriched=[*GOOD.enriched, GOOD.enriched[5]]), "enriched orders: 1 duplicates", 1, 0),
        (contents(enriched=GOOD.enriched[:-1]), "enriched orders: 1 lost", 0, 1),
        (
            contents(enriched=[{**GOOD.enriched[0], "total_cents": 1}, *GOOD.enriched[1:]]),
            "enriched orders: 1 wrong",
            0,
            0,
        ),
        (contents(enriched=[*GOOD.enriched, {"order": 9_999}]), "enriched orders: 1 unexpected", 0, 0),
        (contents(revenue=[*WINDOWS, WINDOWS[0]]), "windows: 1 duplicates", 1, 0),
        (contents(revenue=WINDOWS[1:]), "windows: 1 lost", 0, 1),
        (contents(revenue=[(WINDOWS[0][0], Revenue(1, 1)), *WINDOWS[1:]]), "windows: 1 wrong", 0, 0),
        (contents(open_transactions=2), "2 transactions are open", 0, 0),
    ],
)
def test_what_is_planted_is_found(planted: Contents, finding: str, duplicates: int, lost: int) -> None:
    proof = prove(MADE, planted)
    assert (proof.findings, proof.duplicates, proof.lost) == ([finding], duplicates, lost)


def test_an_order_that_the_broker_lost_is_found_though_its_outputs_are_right() -> None:
    left = MADE[:-2] + MADE[-1:]
    closed, _ = sum_windows(left)
    proof = prove(
        MADE, contents(inputs=left, enriched=[enrich(o) for o in left], revenue=list(closed.items()))
    )
    assert (proof.findings, proof.lost) == (["inputs: 1 lost"], 1)


def test_a_window_that_is_not_closed_must_not_be_there() -> None:
    last = MADE[-1]
    still_open = (Window(last.at_ms // WINDOW_MS * WINDOW_MS, REGIONS[last.country]), Revenue(1, 1))
    assert prove(MADE, contents(revenue=[*WINDOWS, still_open])).findings == ["windows: 1 unexpected"]


def test_a_key_that_is_there_three_times_is_two_duplicates() -> None:
    found = tally({"a": 1, "b": 2}, [("a", 1), ("a", 1), ("a", 1)])
    assert (found.expected, found.found, found.duplicates, found.lost) == (2, 3, 2, 1)


# Kills


def test_kills_are_spread_over_the_stream_and_over_the_moments() -> None:
    planned = plan_kills(6_000, 3, 2)
    assert [kill.target for kill in planned] == [DRIVER, BROKER, DRIVER, BROKER, DRIVER]
    assert [kill.due for kill in planned] == [1_000, 2_000, 3_000, 4_000, 5_000]
    assert [kill.moment for kill in planned] == [WRITTEN, WRITTEN, DECIDED, WRITTEN, WRITTEN]
    assert plan_kills(6_000, 0, 0) == []
    assert [kill.target for kill in plan_kills(6_000, 0, 2)] == [BROKER, BROKER]


def test_the_checkpoint_tells_what_a_kill_has_interrupted(tmp_path: Path) -> None:
    assert describe_query(tmp_path) == "before the first batch"
    for name in ("offsets/0", "offsets/1", "offsets/.1.crc", "commits/0"):
        file = tmp_path / "checkpoint/enriched" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert describe_query(tmp_path) == "in the middle of batch 1"
    (tmp_path / "checkpoint/enriched/commits/1").touch()
    assert describe_query(tmp_path) == "after batch 1"


# Processes


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_kill_takes_everything_with_it_that_was_started(tmp_path: Path) -> None:
    """Also what has a process group of its own, as Spark's workers have."""
    script = "set -m; (sleep 60 & sleep 60) & wait"
    child = Child(["bash", "-c", script], tmp_path / "log", os.environ)
    try:
        until(lambda: len(descendants(child.pid)) == 4)
        pids = descendants(child.pid)
    finally:
        child.kill()
    assert child.code == -signal.SIGKILL
    wait_until_gone(pids)


def test_a_process_that_ends_cleanly_is_given_the_time(tmp_path: Path) -> None:
    child = Child(["bash", "-c", "trap 'exit 5' TERM; echo up; read"], tmp_path / "log", os.environ)
    try:
        until(lambda: "up" in child.output())
        assert asyncio.run(child.stop()) == 5
    finally:
        child.kill()


def test_a_tethered_command_ends_with_who_started_it(tmp_path: Path) -> None:
    """Here its input is closed, as the kernel does it when a process is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek.cli.node.tethered", "start", "--port", "0", "--http", "off"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        assert b" ready: " in process.stdout.readline()
        process.stdin.close()
        assert process.wait(20) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# What is shown


def story() -> Story:
    told = Story(orders=2_000, windows=40)
    told.counts += [Counts(float(i), i * 100, i * 90 + 20, i * 90, i) for i in range(1, 21)]
    told.counts.append(Counts(25.0, 2_000, 2_020, 2_000, 40))
    told.kills += [
        Kill(5.0, DRIVER, 4711, "in the middle of batch 3 <&>", 9.0),
        Kill(12.0, BROKER, 4712, "after batch 5"),
    ]
    told.batches += [
        Batch(3.0, "enriched", 0, 100),
        Batch(3.5, "revenue", 0, 0),
        Batch(9.0, "enriched", 1, 9),
    ]
    return told


def texts(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def titles(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]


def test_the_picture_tells_the_numbers_and_every_kill_and_batch() -> None:
    picture = svg(story(), prove(MADE, contents()), 33.3)
    for text in ("inputs: 2,000", "outputs: 2,000", "duplicates: 0", "lost: 0"):
        assert text in texts(picture)
    told = titles(picture)
    assert "5.0 s: the driver (pid 4711) was killed in the middle of batch 3 <&>" in told
    assert "12.0 s: the broker (pid 4712) was killed after batch 5" in told
    assert sum("committed at" in title for title in told) == 3
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_the_picture_does_not_hide_a_finding() -> None:
    proof = prove(MADE, contents(enriched=[*GOOD.enriched[1:], GOOD.enriched[5]], revenue=WINDOWS[2:]))
    picture = svg(story(), proof, 33.3)
    windows = f"windows: {len(WINDOWS) - 2} of {len(WINDOWS)} right, 0 twice, 2 lost"
    for text in ("duplicates: 1", "lost: 3", windows):
        assert any(text in shown for shown in texts(picture)), (text, texts(picture))


def inside(picture: str) -> None:
    """No text reaches into the margin, in a font as wide as any of those that may be taken."""
    for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        wide = 0.65 if element.attrib["font-weight"] == "bold" else 0.55
        width = wide * float(element.attrib["font-size"]) * len(element.text or "")
        left = (
            float(element.attrib["x"])
            - width * {"start": 0, "middle": 0.5, "end": 1}[element.attrib["text-anchor"]]
        )
        assert left >= 20, element.text
        assert left + width <= 1_180, element.text


def test_every_label_of_the_picture_is_inside_it() -> None:
    inside(svg(story(), prove(MADE, contents()), 33.3))
    large = story()
    large.orders = 900_000
    inside(svg(large, prove(MADE, contents()), 33.3))
    inside((Path(__file__).parents[3] / "docs/images/demo.svg").read_text())


def test_both_axes_of_the_picture_end_with_a_label_beyond_all_that_is_drawn() -> None:
    picture = svg(story(), prove(MADE, contents()), 33.3)
    root = ElementTree.fromstring(picture)
    places = {
        element.text: (float(element.attrib["x"]), float(element.attrib["y"]))
        for element in root.iter("{http://www.w3.org/2000/svg}text")
    }
    assert places["25 s"][0] == 1_148
    assert places["2,500"][1] == 262 + 5
    for line in root.iter("{http://www.w3.org/2000/svg}polyline"):
        points = [point.split(",") for point in line.attrib["points"].split()]
        assert float(points[-1][0]) == 1_148, "the line goes to its last value"
        assert min(float(y) for _, y in points) >= 262


def contrast(one: str, other: str) -> float:
    """As WCAG computes it, from 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_picture_is_legible_on_a_light_page_and_on_a_dark_one() -> None:
    picture = svg(story(), prove(MADE, contents()), 33.3)
    style, body = re.findall(r"<style>(.*)</style>(.*)", picture, re.DOTALL)[0]
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for scheme in (light, dark):
        colours = dict(re.findall(r"\.([\w-]+)\{\w+:(#\w{6})\}", scheme))
        assert set(re.findall(r'class="([\w-]+)"', body)) <= colours.keys()
        for name, colour in colours.items():
            wanted = {"paper": 1, "paper-line": 1, "pale": 1.2, "pale-line": 1.2, "ink": 7, "grey": 4.5}
            assert contrast(colours["paper"], colour) >= wanted.get(name, 3), name
    assert contrast(*(re.findall(r"\.paper\{fill:(#\w+)", scheme)[0] for scheme in (light, dark))) > 15
    assert "#" not in re.sub(r"<title>.*?</title>", "", body), "every colour is one of the style's"


def test_nothing_is_drawn_outside_and_no_run_is_too_short() -> None:
    root = ElementTree.fromstring(svg(Story(100, 1), Proof(*[tally({}, [])] * 3, 0, 0, 0), 0.0))
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= float(element.attrib["x"]) <= 1_200
        assert 0 <= float(element.attrib["y"]) <= 675


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_is_told_what_happens_and_every_ten_seconds_how_things_are() -> None:
    err = io.StringIO()
    view = DemoView(Terminal({}, stderr=err), {DRIVER: 3, BROKER: 2})
    told = Story(2_000, 40)
    for counts in story().counts:
        told.counts.append(counts)
        view.show(told)
    view.tell(12.41, "killed the driver (pid 4711) in the middle of batch 3")
    view.clear()
    lines = err.getvalue().splitlines()
    assert lines == [
        "  10.0 s  1,000 of 2,000 orders produced, 900 enriched, 10 of 40 windows, lag 100",
        "  20.0 s  2,000 of 2,000 orders produced, 1,800 enriched, 20 of 40 windows, lag 200",
        "  12.4 s  killed the driver (pid 4711) in the middle of batch 3",
    ]


def test_a_terminal_is_redrawn_below_what_has_happened() -> None:
    err = Tty()
    view = DemoView(Terminal({"TERM": "xterm"}, stderr=err), {DRIVER: 3, BROKER: 2})
    view.show(story())
    first = err.getvalue()
    assert "killed: driver 1 of 3, broker 1 of 2" in first
    assert first.count("\n") == 5
    view.tell(12.41, "killed the broker (pid 4711) after batch 5")
    assert err.getvalue()[len(first) :].startswith("\x1b[5A\r\x1b[J\u2620   12.4 s  killed the broker")
    second = len(err.getvalue())
    view.show(story())
    assert err.getvalue()[second:].startswith("\r\x1b[J\n  produced")
    assert all(len(line) < 80 for line in first.splitlines())
