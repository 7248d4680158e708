"""The benchmark's own arithmetic and pictures, and the control program that it drives Odradek with."""

import pathlib
import socket
import subprocess
import sys
from xml.dom import minidom

import pytest

from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.topics import create_topic

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"
CONTROL = BENCHMARKS / "odradek-ctl"


@pytest.fixture
def modules(monkeypatch):
    """The benchmark's modules, which import each other as a script's neighbours do."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import budget
    import chart
    import report

    yield budget, chart, report
    for name in ("budget", "chart", "report", "steal"):
        sys.modules.pop(name)


@pytest.mark.parametrize(
    ("odradek", "apache", "verdict"),
    [
        (39, 200, "met"),
        (39, 100, "met by value"),
        (60, 400, "met by ratio"),
        (60, 200, "missed"),
        (39, None, "met"),
        (60, None, "missed"),
    ],
)
def test_a_budget_is_met_by_the_number_or_by_the_ratio(modules, odradek, apache, verdict):
    row = modules[0].Row("latency.p50", "latency", "us", "latency", 193, 40)
    assert row.verdict(odradek, apache and odradek / apache) == verdict


def test_more_is_better_where_the_row_says_so(modules):
    row = modules[0].Row("x", "rate", "MB/s", "x", 100, 500, lower_is_better=False)
    assert row.verdict(600, 6) == "met"
    assert row.verdict(400, 4) == "missed"


def test_a_number_that_only_counts_beside_apache_is_not_met_by_itself(modules):
    row = modules[0].Row("x", "rate", "1/s", "x", 1, 1, lower_is_better=False, by_ratio_only=True)
    assert row.verdict(600, 1.2) == "met by ratio"
    assert row.verdict(400, 0.8) == "missed"


def test_a_report_names_what_was_missed_with_its_profile(modules):
    _, _, report = modules

    def taken(quiet, spoilt=None):
        return [report.Sample(quiet, 0.01), *([report.Sample(*spoilt)] if spoilt else [])]

    results = report.Results(
        first={"latency.p50": taken(60.0, (500.0, 0.3)), "start.rss": taken(26.0)},
        apache={"latency.p50": taken(200.0), "start.rss": taken(390.0)},
        second={"latency.p50": taken(66.0, (900.0, 0.2)), "start.rss": taken(26.0)},
        profiles={"latency": "100.0% somewhere.py:somehow\n"},
    )
    text = report.markdown(results)
    row = next(line for line in text.splitlines() if "1 in flight, p50" in line and line.startswith("|"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:4] == ["63 (60-66, 2 of 4)", "200 (200-200, 1 of 1)"]
    assert cells[4:] == ["0.315", "40", "0.207", "1.10", "1%, 1%", "missed"]
    assert "100.0% somewhere.py:somehow" in text
    assert "memory, idle" not in text.partition("## Missed")[2]


def test_sections_measured_anew_take_the_place_of_the_old_ones(modules):
    _, _, report = modules

    def results(value, command, sections):
        samples = {f"{section}.p50": [report.Sample(value, 0.01)] for section in sections}
        run = report.Invocation(command, "today", "a machine", {"Odradek": command}, True, sections)
        profiles = dict.fromkeys(sections, f"profile of {command}")
        return report.Results(dict(samples), dict(samples), dict(samples), profiles, [], [run])

    known = report.Results.load(results(1.0, "old", ["latency", "e2e"]).dump()).without(["e2e"])
    known.add(results(2.0, "new", ["e2e"]))
    assert {key: found[0].value for key, found in known.first.items()} == {"latency.p50": 1.0, "e2e.p50": 2.0}
    assert known.profiles == {"latency": "profile of old", "e2e": "profile of new"}
    text = report.markdown(known)
    assert "- latency: `old`" in text
    assert "- e2e: `new`" in text


def test_connectors_that_take_turns_are_compared_round_by_round(modules):
    budget, _, report = modules
    row = next(row for row in budget.ROWS if row.key == "spark.read")
    rounds = {
        "first": [(200.0, 0.0), (20.0, 0.0), (9.0, 0.4)],
        "other": [(100.0, 0.0), (10.0, 0.0), (90.0, 0.4)],
        "second": [(220.0, 0.0), (24.0, 0.0), (9.0, 0.4)],
    }
    samples = ({row.key: [report.Sample(*sample) for sample in of]} for of in rounds.values())
    results = report.Results(*samples)
    assert results.ratio(row) == pytest.approx((2.1 + 2.2) / 2), "without the round that was disturbed"
    assert results.verdict(row) == "met by ratio"


def test_the_chart_is_well_formed_and_says_its_numbers(modules):
    budget, chart, _ = modules
    rows = [chart.Bar(row, 10.0, 100.0, 0.1) for row in budget.ROWS]
    document = minidom.parseString(chart.svg("another <broker>", "machine & more", rows))
    titles = [t.firstChild.data for t in document.getElementsByTagName("title")]
    assert titles[0] == "Odradek beside another <broker>"
    assert sum("Odradek 10" in t and "another <broker> 100" in t for t in titles) == len(budget.ROWS)
    for bar in document.getElementsByTagName("rect"):
        assert float(bar.getAttribute("width")) > 0


def control(*args: object) -> str:
    done = subprocess.run(
        [str(CONTROL), *map(str, args)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_control_program_starts_kills_restarts_and_stops_a_node(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = control("start", "--port", port, "--dir", tmp_path, "--set", "num.partitions=3")
    try:
        create_topic(address, "kept")
        with Connection(address) as connection:
            assert produce(connection, "kept", batch()).error_code == 0
        pid = control("status", "--dir", tmp_path).split()[2]
        control("kill", 1, "--dir", tmp_path)
        assert control("status", "--dir", tmp_path) == f"1 broker,controller down {port}"
        control("restart", 1, "--dir", tmp_path)
        assert control("status", "--dir", tmp_path).split()[2] != pid
        with Connection(address) as connection:
            assert produce(connection, "kept", batch()).base_offset == 1
    finally:
        control("stop", "--dir", tmp_path)
    assert "down" in control("status", "--dir", tmp_path)
