"""Faults planted into whole nodes of a cluster. The simulation must catch each by the name of a rule.

`python -m tests.sim.planted_cluster` searches for the first seed that catches each; CI plays the seeds in
CAUGHT. Every change of a node tells other stories, so CI goes on with the seeds behind one that does not
catch its fault any more. A seed tells the same story everywhere only with PYTHONHASHSEED=0, so both run in a
process that has it.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from odradek.core.errors import KafkaError
from odradek.metadata.loader import MetadataLoader
from odradek.sim.cluster import checks
from odradek.sim.cluster.story import ClusterStory

_EVERYTHING = 1 << 62
_NAMED = tuple(rule for rule in checks.RULES if rule != checks.LIVENESS)

Planted = tuple[tuple[object, str, Callable[..., object]], ...]


def _answers_all_who_wait(loader: MetadataLoader, error: KafkaError) -> None:
    """A controller that resigns answers as if all that it had appended were committed."""
    loader._is_taken_over = False
    loader._pending.clear()
    loader._committed.release(_EVERYTHING)
    loader._applied.release(_EVERYTHING)
    loader._go_on()


PLANTED: dict[str, Planted] = {
    "a deposed controller answers": ((MetadataLoader, "release", _answers_all_who_wait),),
}

SEARCHED = 200
NEARBY = 10

# The seed that catches each fault, and the rules of which it breaks one there.
CAUGHT: dict[str, tuple[int, tuple[str, ...]]] = {
    "a deposed controller answers": (
        1,
        (checks.PRODUCER_IDS, checks.CREATED, checks.DELETED, checks.BROKER_EPOCHS),
    ),
}


@contextmanager
def planted(fault: str) -> Iterator[None]:
    with ExitStack() as stack:
        for target, name, broken in PLANTED[fault]:
            stack.enter_context(patch.object(target, name, broken))
        yield


def named_violation(fault: str, seed: int) -> str | None:
    """What a seed finds first of a planted fault by a rule about what was decided."""
    with planted(fault):
        violations = ClusterStory(seed).play().violations
    return next((violation for violation in violations if violation.startswith(_NAMED)), None)


def search(fault: str, first: int = 0, count: int = SEARCHED) -> tuple[int, str] | None:
    for seed in range(first, first + count):
        violation = named_violation(fault, seed)
        if violation is not None:
            return seed, violation
    return None


def in_a_reproducible_process(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.planted_cluster", *arguments],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def _main(arguments: list[str]) -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":
        done = in_a_reproducible_process(*arguments)
        print(done.stdout + done.stderr, end="")
        return done.returncode
    if arguments:
        fault, seed = arguments
        catch = search(fault, int(seed), NEARBY)
        print(None if catch is None else catch[1])
        return 0
    found = {fault: search(fault) for fault in PLANTED}
    for fault, catch in found.items():
        print(f"{fault}: {'not caught' if catch is None else f'seed {catch[0]}: {catch[1]}'}")
    return 0 if all(found.values()) else 3


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
