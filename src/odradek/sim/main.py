"""`odradek sim`: runs seeds, and replays one. The stories are in stories/.

Both run in a child process with PYTHONHASHSEED=0, so that a seed gives the same history on every machine.
"""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from types import FrameType

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.sim.checkers.logs import LogView
from odradek.sim.quorum import running as quorum
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
_GRACE_S = 2
_FIRST_PROGRESS_S, _PROGRESS_S = 1, 5

Echo = Callable[[str], None]


class StoryKind(Enum):
    """The story to run. The value is its command line option."""

    GROUPS = ""
    TRANSACTIONS = "--transactions"
    PIPELINES = "--pipelines"
    QUORUM = "--quorum"


def run(
    seeds: int,
    start: int = 0,
    minutes: float | None = None,
    *,
    story: StoryKind = StoryKind.GROUPS,
    echo: Echo | None = None,
) -> int:
    """Run seeds in order until one has a violation, all are done, or the time is up. Exit code 0 or 3."""
    if story is StoryKind.QUORUM:
        return quorum.run(seeds, start, minutes, echo=echo or print)
    if not _reproducible():
        until = "" if minutes is None else str(minutes)
        return _again("run", str(seeds), str(start), until, story.value)
    echo = echo or print
    began = shown = time.monotonic()
    events = records = lives = played = 0
    code = EXIT_OK
    try:
        for seed in range(start, start + seeds):
            outcome = _play_or_stop(seed, story)
            played += 1
            events += outcome.events
            records += outcome.acknowledged_records
            lives += outcome.lives
            if outcome.violations:
                echo(report(outcome, story=story))
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
    return code


def _play_or_stop(seed: int, story: StoryKind) -> Outcome:
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
        outcome = play(seed, story=story)
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
    return outcome


def _count(number: int, noun: str, nouns: str | None = None) -> str:
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def replay(
    seed: int, *, trace: bool = False, story: StoryKind = StoryKind.GROUPS, echo: Echo | None = None
) -> int:
    """Run one seed again and print a full report; with `trace`, every event as it happens."""
    if story is StoryKind.QUORUM:
        return quorum.replay(seed, trace=trace, echo=echo or print)
    if not _reproducible():
        return _again("replay", str(seed), "trace" if trace else "", story.value)
    echo = echo or print
    outcome = play(seed, story=story, sink=echo if trace else None)
    echo(report(outcome, story=story))
    return EXIT_FINDING if outcome.violations else EXIT_OK


def play(seed: int, *, story: StoryKind = StoryKind.GROUPS, sink: Echo | None = None) -> Outcome:
    match story:
        case StoryKind.TRANSACTIONS:
            outcome = TransactionStory(seed, odradek_node, sink=sink).play()
        case StoryKind.PIPELINES:
            outcome = SparkStory(seed, odradek_node, sink=sink).play()
        case _:
            outcome = SingleNodeStory(seed, odradek_node, logs_of_node, sink=sink).play()
    gc.collect()
    return outcome


def report(outcome: Outcome, *, story: StoryKind = StoryKind.GROUPS) -> str:
    """A report about a seed: faults, violations, last events."""
    count = len(outcome.violations)
    lines = [
        f"seed {outcome.seed}: {count or 'no'} violation{'' if count == 1 else 's'}",
        f"  {outcome.virtual_seconds:.1f} virtual seconds, {outcome.lives} lives, {outcome.events} events, "
        f"{outcome.acknowledged_records} records and {outcome.acknowledged_commits} commits acknowledged, "
        f"{outcome.read_records} records read; trace {outcome.digest}",
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
        seeds, start, minutes, story = arguments
        until = float(minutes) if minutes else None
        return run(int(seeds), int(start), until, story=StoryKind(story))
    seed, trace, story = arguments
    return replay(int(seed), trace=bool(trace), story=StoryKind(story))


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
