"""`odradek sim`: runs seeds, and replays one. The stories are in stories/.

Both run in a child process with PYTHONHASHSEED=0, so that a seed gives the same history on every machine.
"""

import gc
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from types import FrameType
from typing import Any

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.sim.checkers.logs import LogView
from odradek.sim.cluster import checks as cluster
from odradek.sim.cluster.story import ClusterStory
from odradek.sim.quorum import running as quorum
from odradek.sim.replication import rules as replication
from odradek.sim.replication.story import ReplicationStory
from odradek.sim.stories.outcome import Outcome
from odradek.sim.stories.plan import Settings
from odradek.sim.stories.single_node import SingleNodeStory
from odradek.sim.stories.spark import SparkStory
from odradek.sim.stories.story import PORT
from odradek.sim.stories.transactions import TransactionStory
from odradek.sim.world.cluster import NodeFactory, NodeLike
from odradek.sim.world.runtime import SimRuntime

EXIT_OK, EXIT_FINDING, EXIT_INTERRUPTED = 0, 3, 130
SHOWN_VIOLATIONS = 10
SHOWN_EVENTS = 40
ENOUGH_CLUSTERS = 6
ENOUGH_REPLICATIONS = 50
"""In so many seeds of a cluster, all that puts its rules to the test must have happened."""
_GRACE_S = 2
_FIRST_PROGRESS_S, _PROGRESS_S = 1, 5

Echo = Callable[[str], None]


class StoryKind(Enum):
    """The story to run. The value is its command line option."""

    GROUPS = ""
    TRANSACTIONS = "--transactions"
    PIPELINES = "--pipelines"
    QUORUM = "--quorum"
    CLUSTER = "--cluster"
    REPLICATION = "--replication"


def run(
    seeds: int,
    start: int = 0,
    minutes: float | None = None,
    *,
    story: StoryKind = StoryKind.GROUPS,
    seconds: float | None = None,
    echo: Echo | None = None,
) -> int:
    """Run seeds in order until one has a violation, all are done, or the time is up. Exit code 0 or 3.

    `seconds` is how long each story lasts in virtual time; that of the quorum is counted in steps instead.
    """
    if story is StoryKind.QUORUM:
        return quorum.run(seeds, start, minutes, echo=echo or print)
    if not _reproducible():
        return _again("run", str(seeds), str(start), _text(minutes), story.value, _text(seconds))
    echo = echo or print
    began = shown = time.monotonic()
    events = records = lives = played = 0
    happened: Counter[str] = Counter()
    code = EXIT_OK
    try:
        for seed in range(start, start + seeds):
            outcome = _play_or_stop(seed, story, seconds)
            played += 1
            events += outcome.events
            records += outcome.acknowledged_records
            lives += outcome.lives
            happened.update(outcome.happened)
            if outcome.violations:
                echo(report(outcome, story=story, seconds=seconds))
                return EXIT_FINDING
            now = time.monotonic()
            if now - shown > (_FIRST_PROGRESS_S if shown == began else _PROGRESS_S):
                shown = now
                told = f"{played}/{seeds} seeds, {_count(records, 'record')} acknowledged"
                print(f"{told}, {_count(lives, 'life', 'lives')}, {now - began:.0f} s", file=sys.stderr)
            if minutes is not None and now - began > 60 * minutes:
                break
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    end = "interrupted after " if code == EXIT_INTERRUPTED else ""
    echo(
        f"{end}{_count(played, 'seed')} without a finding: {_count(records, 'record')} acknowledged, "
        f"{_count(lives, 'life', 'lives')}, {events} events, {time.monotonic() - began:.1f} s"
    )
    if happened:
        echo(f"  {_counted(happened)}")
    never = _never_happened(story, happened, played)
    if code == EXIT_OK and never:
        echo(f"never happened, so nothing is proved by this run: {', '.join(never)}")
        return EXIT_FINDING
    return code


def _never_happened(story: StoryKind, happened: Mapping[str, int], played: int) -> list[str]:
    if story is StoryKind.CLUSTER and played >= ENOUGH_CLUSTERS:
        return cluster.missing(happened)
    if story is StoryKind.REPLICATION and played >= ENOUGH_REPLICATIONS:
        return replication.missing(happened)
    return []


def _play_or_stop(seed: int, story: StoryKind, seconds: float | None) -> Outcome:
    """An interrupt ends the run after this seed: in the middle of a seed, simulated code would see it as a
    failure.

    The terminal and the parent process each interrupt once. A further interrupt ends the run at once.
    """
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 2:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        outcome = play(seed, story=story, seconds=seconds)
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
    return outcome


def _count(number: int, noun: str, nouns: str | None = None) -> str:
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def _counted(happened: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in happened.items())


def _text(number: float | None) -> str:
    return "" if number is None else str(number)


def replay(
    seed: int,
    *,
    trace: bool = False,
    story: StoryKind = StoryKind.GROUPS,
    seconds: float | None = None,
    echo: Echo | None = None,
) -> int:
    """Run one seed again and print a full report; with `trace`, every event as it happens."""
    if story is StoryKind.QUORUM:
        return quorum.replay(seed, trace=trace, echo=echo or print)
    if not _reproducible():
        return _again("replay", str(seed), "trace" if trace else "", story.value, _text(seconds))
    echo = echo or print
    outcome = play(seed, story=story, seconds=seconds, sink=echo if trace else None)
    echo(report(outcome, story=story, seconds=seconds))
    return EXIT_FINDING if outcome.violations else EXIT_OK


def play(
    seed: int,
    *,
    story: StoryKind = StoryKind.GROUPS,
    seconds: float | None = None,
    sink: Echo | None = None,
) -> Outcome:
    length: dict[str, Any] = {} if seconds is None else {"seconds": seconds}
    match story:
        case StoryKind.TRANSACTIONS:
            outcome = TransactionStory(seed, odradek_node, sink=sink, **length).play()
        case StoryKind.PIPELINES:
            outcome = SparkStory(seed, odradek_node, sink=sink, **length).play()
        case StoryKind.CLUSTER:
            outcome = ClusterStory(seed, sink=sink, **length).play()
        case StoryKind.REPLICATION:
            outcome = ReplicationStory(seed, sink=sink, **length).play()
        case _:
            outcome = SingleNodeStory(seed, odradek_node, logs_of_node, sink=sink, **length).play()
    gc.collect()
    return outcome


def report(outcome: Outcome, *, story: StoryKind = StoryKind.GROUPS, seconds: float | None = None) -> str:
    """A report about a seed: faults, violations, last events."""
    count = len(outcome.violations)
    lines = [
        f"seed {outcome.seed}: {count or 'no'} violation{'' if count == 1 else 's'}",
        f"  {outcome.virtual_seconds:.1f} virtual seconds, {outcome.lives} lives, {outcome.events} events, "
        f"{outcome.acknowledged_records} records and {outcome.acknowledged_commits} commits acknowledged, "
        f"{outcome.read_records} records read; trace {outcome.digest}",
        *([f"  {_counted(outcome.happened)}"] if outcome.happened else []),
        "faults:",
        *(f"  {fault}" for fault in outcome.faults),
    ]
    if outcome.violations:
        lines += ["violations, in order:"]
        lines += [f"  {violation}" for violation in outcome.violations[:SHOWN_VIOLATIONS]]
        if len(outcome.violations) > SHOWN_VIOLATIONS:
            lines.append(f"  and {len(outcome.violations) - SHOWN_VIOLATIONS} more")
        lines += ["the last events:", *(f"  {event}" for event in outcome.recent[-SHOWN_EVENTS:])]
        option = f"{story.value} " if story.value else ""
        option += "" if seconds is None else f"--seconds {seconds:g} "
        lines.append(f"again: odradek sim replay {outcome.seed} {option}[--trace]")
    return "\n".join(lines)


def odradek_node(settings: Settings) -> NodeFactory:
    """A factory for real nodes on the simulated cluster."""

    def build(runtime: SimRuntime, data_dir: str) -> Node:
        host = runtime.host
        config, _ = NodeConfig.from_sources(
            {
                "node.id": "1",
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://{host}:{PORT},CONTROLLER://{host}:{PORT + 1}",
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
    with subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": "0"}) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                # A terminal interrupts both processes, and the child prints its progress. `kill` interrupts
                # only this one.
                with suppress(subprocess.TimeoutExpired):
                    return child.wait(_GRACE_S)
                child.send_signal(signal.SIGINT)


def _main(command: str, *arguments: str) -> int:
    if command == "run":
        seeds, start, minutes, story, seconds = arguments
        return run(int(seeds), int(start), _number(minutes), story=StoryKind(story), seconds=_number(seconds))
    seed, trace, story, seconds = arguments
    return replay(int(seed), trace=bool(trace), story=StoryKind(story), seconds=_number(seconds))


def _number(text: str) -> float | None:
    return float(text) if text else None


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
