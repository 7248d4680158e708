"""Play many seeds of the quorum's story, or one with everything that happens. `odradek sim --quorum`."""

import sys
import time
from collections.abc import Callable

from odradek.sim.quorum.checks import Counters
from odradek.sim.quorum.story import QuorumStory, play

EXIT_OK, EXIT_FINDING, EXIT_INTERRUPTED = 0, 3, 130
MUST_HAPPEN = {
    "truncated": "a divergence was truncated",
    "snapshots": "a snapshot was fetched",
    "deposed": "a leader was deposed",
    "voters_changed": "a voter changed",
}
ENOUGH_SEEDS = 100

Echo = Callable[[str], None]


def missing(counters: Counters) -> list[str]:
    """What never happened: rules that were never put to the test."""
    return [text for name, text in MUST_HAPPEN.items() if not getattr(counters, name)]


def run(seeds: int, start: int = 0, minutes: float | None = None, *, echo: Echo = print) -> int:
    """Play seeds in order until one has a finding, all are done or the time is up."""
    began = shown = time.monotonic()
    total, steps, played = Counters(), 0, 0
    code, end = EXIT_OK, ""
    try:
        for seed in range(start, start + seeds):
            outcome = play(seed)
            played += 1
            steps += outcome.steps
            total.add(outcome.counters)
            if outcome.violation is not None:
                echo(f"seed {seed}: {outcome.violation}\nagain: odradek sim replay {seed} --quorum [--trace]")
                return EXIT_FINDING
            now = time.monotonic()
            if now - shown > 5:
                shown = now
                print(f"{played}/{seeds} seeds, {steps} steps, {now - began:.0f} s", file=sys.stderr)
            if minutes is not None and now - began > 60 * minutes:
                break
    except KeyboardInterrupt:
        code, end = EXIT_INTERRUPTED, "interrupted after "
    happened = ", ".join(f"{getattr(total, name)} {name}" for name in Counters.__slots__)
    echo(
        f"{end}{played} seeds without a finding: {steps} steps, {happened}, {time.monotonic() - began:.1f} s"
    )
    if code == EXIT_OK and played >= ENOUGH_SEEDS and missing(total):
        echo(f"never happened, so nothing is proved by this run: {', '.join(missing(total))}")
        return EXIT_FINDING
    return code


def replay(seed: int, *, trace: bool = False, echo: Echo = print) -> int:
    """Play one seed again; with `trace`, every event of the nodes."""
    story = QuorumStory(seed)
    story.world.sink = echo if trace else None
    outcome = story.play()
    happened = ", ".join(f"{getattr(outcome.counters, name)} {name}" for name in Counters.__slots__)
    echo(f"seed {seed}: {outcome.violation or 'no violation'}")
    echo(f"  {outcome.virtual_ms / 1000:.1f} virtual seconds, {outcome.steps} steps, {happened}")
    return EXIT_OK if outcome.violation is None else EXIT_FINDING
