#!/usr/bin/env python3
"""Odradek and Apache Kafka side by side: the same loads, A B A, ratios against the budget.

    make bench                                      everything, about an hour on two cores
    make bench BENCH_ARGS="--only fetch --update"    one section again, the other results stay
    make bench BENCH_ARGS="--quick --only latency"   while developing
    make bench BENCH_ARGS="--only produce --no-apache"

Writes benchmarks/RESULTS.md, results.svg and results.json (a --quick or partial run only with --out DIR or
--update).
Timed parts run under a lock on --lock (or $BENCH_LOCK), so that several people can share a machine.
"""

import argparse
import contextlib
import datetime
import fcntl
import os
import pathlib
import platform
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator

import chart
import report
from awake import awake
from budget import QUORUM, REPLICATION, SECTIONS, SPARK
from cluster import HERE, PEER, Cluster, build_kgen, run
from loads import LOADS, QUICK, NewCluster, Plan
from quorum_load import quorum
from replication_load import replication
from spark_load import spark
from steal import Meter, Sample, Samples, median


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default=",".join(SECTIONS), help="comma separated: " + " ".join(SECTIONS))
    p.add_argument(
        "--quick", action="store_true", help="short loads, two runs: for development, not for results"
    )
    p.add_argument("--runs", type=int, help="runs of Apache, and of Odradek's two halves together")
    p.add_argument(
        "--update", action="store_true", help="with --only: put its sections into the results there are"
    )
    p.add_argument("--no-apache", action="store_true", help="measure Odradek alone")
    p.add_argument("--let-sleep", action="store_true", help="let idle cores sleep (see awake.py)")
    p.add_argument("--port", type=int, default=21092)
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    p.add_argument("--out", type=pathlib.Path, help="directory for RESULTS.md, results.svg and results.json")
    p.add_argument("--lock", default=os.environ.get("BENCH_LOCK"), help="file to lock around timed parts")
    return p.parse_args()


@contextlib.contextmanager
def alone(lock: str | None) -> Iterator[None]:
    if lock is None:
        yield
        return
    with open(lock, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Bench:
    """One invocation: sections in turn, each broker in turn."""

    def __init__(self, args: argparse.Namespace, scratch: pathlib.Path) -> None:
        self.args, self.scratch = args, scratch
        self.plan = QUICK if args.quick else Plan()
        self.runs = args.runs or (2 if args.quick else 6)
        self.kgen = build_kgen(scratch)
        self.results = report.Results()

    def new(self, broker: str, profile: pathlib.Path | None = None) -> NewCluster:
        return lambda *sets: Cluster(
            broker, self.kgen, self.args.port, self.scratch, sets=sets, profile=profile
        )

    def measure(self, section: str, broker: str, runs: int, into: Samples) -> None:
        print(f"{datetime.datetime.now():%H:%M:%S} {section}, {broker}, {runs} runs", flush=True)
        with alone(self.args.lock):
            meter = Meter()
            for key, value in self.load(section, broker, runs):
                sample = Sample(value, round(meter.share(), 4))
                into.setdefault(key, []).append(sample)
                print(f"  {key} = {value:.4g} ({sample.stolen:.0%} stolen)", flush=True)

    def load(self, section: str, broker: str, runs: int) -> Iterator[tuple[str, float]]:
        plan, place = self.plan, (self.scratch, self.args.port)
        if section == REPLICATION:
            return replication(broker, self.kgen, *place, plan, runs)
        if section != QUORUM:
            return LOADS[section](self.new(broker), plan, runs)
        sizes = {"partitions": plan.partitions, "many": plan.many_partitions, "creates": plan.quorum_creates}
        return quorum(broker, *place, **sizes, runs=runs)

    def compare_connectors(self) -> None:
        """Spark's connectors, ours and the official one, take turns on one broker in one session."""
        results, rounds = self.results, max(1, self.runs // 2)
        places = {"odradek": results.first, "official": results.apache, "odradek again": results.second}
        print(f"{datetime.datetime.now():%H:%M:%S} {SPARK}, {rounds} rounds", flush=True)
        with alone(self.args.lock), self.new("odradek")() as cluster:
            meter = Meter()
            rows, seconds = self.plan.spark_rows, self.plan.spark_s
            for side, key, value in spark(
                cluster, rows=rows, seconds=seconds, rounds=rounds, alone=self.args.no_apache
            ):
                sample = Sample(value, round(meter.share(), 4))
                places[side].setdefault(key, []).append(sample)
                print(f"  {key} = {value:.4g}, {side} ({sample.stolen:.0%} stolen)", flush=True)

    def section(self, section: str) -> None:
        results = self.results
        try:
            if section == SPARK:
                self.compare_connectors()
                return
            half = max(1, self.runs // 2)
            self.measure(section, "odradek", half, results.first)
            if not self.args.no_apache:
                self.measure(section, "apache", self.runs, results.apache)
                self.measure(section, "odradek", max(1, self.runs - half), results.second)
        except Exception as e:  # one broken section must not cost the others; it is reported as failed
            traceback.print_exc()
            results.failures.append(f"{section}: {type(e).__name__}: {e}")
            return
        missed = [row.label for row in results.missed() if row.section == section]
        if missed and section not in ("partitions", QUORUM, REPLICATION):
            self.profile(section)

    def profile(self, section: str) -> None:
        """Run a missed section once more, untimed, to see where the time goes."""
        out = self.scratch / f"{section}.profile"
        print(f"  missed: profiling {section}", flush=True)
        for _ in LOADS[section](self.new("odradek", out), QUICK, 1):
            pass
        self.results.profiles[section] = out.read_text()


def versions(with_apache: bool) -> dict[str, str]:
    commit = run("git", "-C", HERE, "describe", "--always", "--dirty").strip()
    found = {"Odradek": commit, "Python": platform.python_version()}
    if with_apache:
        found["Apache Kafka"] = run(PEER, "version").strip()
        found["Java"] = run("java", "--version").splitlines()[0]
    return found


def main() -> None:
    args = parse()
    sections = args.only.split(",")
    unknown = [s for s in sections if s not in SECTIONS]
    if unknown:
        sys.exit(f"unknown section: {', '.join(unknown)}; known: {', '.join(SECTIONS)}")
    counts = (args.update or sections == list(SECTIONS)) and not args.quick and not args.no_apache
    out: pathlib.Path | None = args.out or (HERE if counts else None)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=args.work))
    try:
        bench = Bench(args, scratch)
        with contextlib.nullcontext() if args.let_sleep else awake(scratch):
            for section in sections:
                bench.section(section)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    results = bench.results
    print("\n" + report.table(results))
    if out:
        out.mkdir(parents=True, exist_ok=True)
        results.invocations.append(invocation(args, sections))
        if args.update and (out / "results.json").exists():
            known = report.Results.load((out / "results.json").read_text()).without(sections)
            known.add(results)
            write(out, known)
        else:
            write(out, results)
    missed = [row.label for row in results.missed()]
    if missed:
        print(f"\nmissed: {'; '.join(missed)}")
    if results.failures:
        sys.exit(f"failed: {'; '.join(results.failures)}")


def invocation(args: argparse.Namespace, sections: list[str]) -> report.Invocation:
    shown = re.sub(r"--(out|work|lock)[ =]\S+ ?", "", " ".join(sys.argv[1:])).strip()
    return report.Invocation(
        command=f'make bench BENCH_ARGS="{shown}"' if shown else "make bench",
        when=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        machine=report.machine(),
        versions=versions(not args.no_apache),
        awake=not args.let_sleep,
        sections=sections,
    )


SOAKS = HERE / "soaks.md"
"""The end of RESULTS.md, which nobody generates."""


def write(out: pathlib.Path, results: report.Results) -> None:
    (out / "RESULTS.md").write_text(report.markdown(results) + SOAKS.read_text())
    (out / "results.json").write_text(results.dump())
    draw(out / "results.svg", "Apache Kafka", results, lambda section: section != SPARK)
    draw(
        out / "spark.svg",
        "Spark's official Kafka connector",
        results,
        lambda section: section == SPARK,
    )


def draw(path: pathlib.Path, other: str, results: report.Results, wanted: Callable[[str], bool]) -> None:
    bars = [
        chart.Bar(row, median(results.odradek(row.key)), median(results.apache[row.key]), ratio)
        for row in results.rows()
        if wanted(row.section) and (ratio := results.ratio(row)) is not None
    ]
    if bars:
        newest = [known for known in results.invocations if any(map(wanted, known.sections))][-1]
        path.write_text(chart.svg(other, f"{newest.machine}, {newest.when}", bars))


if __name__ == "__main__":
    main()
