"""`odradek sim`: run seeds, replay one. The stories are scenario.py's.

Both run in a child process with PYTHONHASHSEED=0, so that a seed tells the same story on every machine.
"""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.sim.checkers import LogView
from odradek.sim.cluster import NodeFactory, NodeLike
from odradek.sim.plan import Settings
from odradek.sim.runtime import SimRuntime
from odradek.sim.scenario import HOST, PORT, Outcome, Scenario

EXIT_OK, EXIT_FINDING = 0, 3
SHOWN_VIOLATIONS = 10
SHOWN_EVENTS = 40

Echo = Callable[[str], None]


def run(seeds: int, start: int = 0, minutes: float | None = None, *, echo: Echo | None = None) -> int:
    """Play seeds in order until one has a finding, all are done or the time is up. Exit code 0 or 3."""
    if not _reproducible():
        return _again("run", str(seeds), str(start), "" if minutes is None else str(minutes))
    echo = echo or print
    began = shown = time.monotonic()
    events = records = lives = played = 0
    for seed in range(start, start + seeds):
        outcome = play(seed)
        played += 1
        events += outcome.events
        records += outcome.acknowledged_records
        lives += outcome.lives
        if outcome.violations:
            echo(report(outcome))
            return EXIT_FINDING
        now = time.monotonic()
        if now - shown > 5:
            shown = now
            echo(
                f"{played}/{seeds} seeds, {records} records acknowledged, {lives} lives, {now - began:.0f} s"
            )
        if minutes is not None and now - began > 60 * minutes:
            break
    echo(
        f"{played} seeds without a finding: {records} records acknowledged, {lives} lives, {events} events, "
        f"{time.monotonic() - began:.1f} s"
    )
    return EXIT_OK


def replay(seed: int, *, trace: bool = False, echo: Echo | None = None) -> int:
    """Play one seed again and tell all about it; with `trace`, every event as it happens."""
    if not _reproducible():
        return _again("replay", str(seed), "trace" if trace else "")
    echo = echo or print
    outcome = play(seed, sink=echo if trace else None)
    echo(report(outcome))
    return EXIT_FINDING if outcome.violations else EXIT_OK


def play(seed: int, *, sink: Echo | None = None) -> Outcome:
    outcome = Scenario(seed, odradek_node, logs_of_node, sink=sink).play()
    gc.collect()
    return outcome


def report(outcome: Outcome) -> str:
    """What happened in a seed: what befell the node, what was violated, what came last."""
    count = len(outcome.violations)
    lines = [
        f"seed {outcome.seed}: {count or 'no'} violation{'' if count == 1 else 's'}",
        f"  {outcome.virtual_seconds:.1f} virtual seconds, {outcome.lives} lives, {outcome.events} events, "
        f"{outcome.acknowledged_records} records and {outcome.acknowledged_commits} commits acknowledged, "
        f"{outcome.read_records} records read; trace {outcome.digest}",
        "what befell the node:",
        *(f"  {fault}" for fault in outcome.faults),
    ]
    if outcome.violations:
        lines += ["violations, the first one first:"]
        lines += [f"  {violation}" for violation in outcome.violations[:SHOWN_VIOLATIONS]]
        if len(outcome.violations) > SHOWN_VIOLATIONS:
            lines.append(f"  and {len(outcome.violations) - SHOWN_VIOLATIONS} more")
        lines += ["the last events:", *(f"  {event}" for event in outcome.recent[-SHOWN_EVENTS:])]
        lines.append(f"again: odradek sim replay {outcome.seed} [--trace]")
    return "\n".join(lines)


def odradek_node(settings: Settings) -> NodeFactory:
    """The node that ships, as the simulated cluster starts it."""

    def build(runtime: SimRuntime, data_dir: str) -> Node:
        config, _ = NodeConfig.from_sources(
            {
                "node.id": "1",
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://{HOST}:{PORT},CONTROLLER://{HOST}:{PORT + 1}",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": data_dir,
            },
            settings.node_config(),
        )
        return Node(config, runtime)

    return build


def logs_of_node(node: NodeLike) -> Iterable[LogView]:
    assert isinstance(node, Node)
    return [partition.log for partition in node.replicas.partitions.values()]


def _reproducible() -> bool:
    return os.environ.get("PYTHONHASHSEED") == "0"


def _again(*arguments: str) -> int:
    command = [sys.executable, "-m", "odradek.sim.main", *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False).returncode


def _main(command: str, *arguments: str) -> int:
    if command == "run":
        seeds, start, minutes = arguments
        return run(int(seeds), int(start), float(minutes) if minutes else None)
    seed, trace = arguments
    return replay(int(seed), trace=bool(trace))


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
