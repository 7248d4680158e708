"""The plan of a seed: the behaviour of network and disk, the configuration of the nodes, and the faults with
their times.

Pure: drawn from a random number generator, with texts for the report.
"""

import errno
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from odradek.sim.checkers.owners import SESSION_TIMEOUT_MS
from odradek.sim.world.clock import MAX_RATE, MIN_RATE
from odradek.sim.world.cluster import CrashKind
from odradek.sim.world.disk import DiskFaults
from odradek.sim.world.network import NetFaults


class RebalanceProtocol(Enum):
    """How the members of a group rebalance."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    MIXED = "one member by each, so that the group moves between them"

    def is_modern(self, index: int) -> bool:
        """Whether the member with this index uses the consumer protocol."""
        return self is RebalanceProtocol.CONSUMER or (self is RebalanceProtocol.MIXED and index % 2 == 1)


class Blow(Enum):
    """The kinds of faults."""

    CRASH_IN_A_CALL = "crash in the middle of a system call"
    CRASH = "crash"
    RESTART = "orderly restart"
    PARTITION = "partition from all others"
    CUT = "cut off in one direction"
    RESET = "all connections reset"
    DISK_ERROR = "disk error, then a crash"
    DISK_FULL = "disk full, then a crash"
    CLOCK_JUMP = "wall clock jumps"
    CLOCK_DRIFT = "clocks run at another rate from now on"
    PAUSE = "process stopped for a while"
    STALLS = "loop stalls again and again"


WEIGHTS: Mapping[Blow, int] = {
    Blow.CRASH_IN_A_CALL: 6,
    Blow.CRASH: 2,
    Blow.RESTART: 2,
    Blow.PARTITION: 1,
    Blow.CUT: 1,
    Blow.RESET: 1,
    Blow.DISK_ERROR: 1,
    Blow.DISK_FULL: 1,
    Blow.CLOCK_JUMP: 1,
    Blow.CLOCK_DRIFT: 1,
    Blow.PAUSE: 1,
    Blow.STALLS: 1,
}
"""The relative frequency of each fault."""
_FATAL = frozenset({Blow.CRASH_IN_A_CALL, Blow.CRASH, Blow.RESTART, Blow.DISK_ERROR, Blow.DISK_FULL})


class Direction(Enum):
    """The direction of a network partition."""

    BOTH = "in both directions"
    TO_HOST = "nothing arrives"
    FROM_HOST = "nothing leaves"


@dataclass(frozen=True, slots=True)
class Plan:
    """How often faults hit the hosts of a story, and how severe they are. The numbers are upper bounds."""

    weights: Mapping[Blow, int]
    wait_seconds: float
    seconds: float
    down_seconds: float
    calls: int
    patience_seconds: float
    """How long to wait for the system call in which a node crashes."""
    power: bool
    """Whether a crash may be a power loss."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One fault of one host, `wait_seconds` after the recovery from the previous one."""

    wait_seconds: float
    host: str
    blow: Blow
    kind: CrashKind
    calls: int
    patience_seconds: float
    seconds: float
    down_seconds: float
    direction: Direction
    jump_ms: int
    rate: float
    errno: int
    operation: str
    crash_in_recovery: int | None
    """The number of system calls after which the restart crashes too."""

    def describe(self) -> str:
        text = f"{self.host}: {self.blow.value}{self._details()}"
        if self.crash_in_recovery is not None and self.blow in _FATAL:
            text += f", again {self.crash_in_recovery} calls into the recovery"
        return text

    def _details(self) -> str:
        match self.blow:
            case Blow.CRASH | Blow.DISK_FULL:
                return f" ({self.kind.value})"
            case Blow.CRASH_IN_A_CALL:
                return f" ({self.kind.value}, after {self.calls} calls)"
            case Blow.DISK_ERROR:
                return f" ({errno.errorcode[self.errno]} on {self.operation}, {self.kind.value})"
            case Blow.CLOCK_JUMP:
                return f" ({self.jump_ms} ms)"
            case Blow.CLOCK_DRIFT:
                return f" ({self.rate:.2f})"
            case Blow.CUT:
                return f" ({self.direction.value}, {self.seconds:.1f} s)"
            case Blow.PARTITION | Blow.PAUSE | Blow.STALLS:
                return f" ({self.seconds:.1f} s)"
            case _:
                return ""


def draw_episode(rng: random.Random, plan: Plan, hosts: Sequence[str]) -> Episode:
    host = rng.choice(hosts)
    blow = rng.choices(list(plan.weights), list(plan.weights.values()))[0]
    kind = rng.choice(list(CrashKind)) if plan.power else CrashKind.KILL
    operation = rng.choice(("pwrite", "fsync"))
    if blow is Blow.DISK_ERROR and operation == "fsync":
        # The kernel drops what it could not write and reports it once: only a reboot shows the real content.
        assert plan.power, "a story without power losses has no failing fsync"
        kind = CrashKind.POWER
    one_way = rng.choice((Direction.TO_HOST, Direction.FROM_HOST))
    return Episode(
        wait_seconds=rng.uniform(0.1, 1) * plan.wait_seconds,
        host=host,
        blow=blow,
        kind=kind,
        calls=int(rng.paretovariate(0.5)) % plan.calls,
        patience_seconds=plan.patience_seconds,
        seconds=rng.uniform(0.03, 1) * plan.seconds,
        down_seconds=rng.uniform(0.03, 1) * plan.down_seconds,
        direction=one_way if blow is Blow.CUT else Direction.BOTH,
        jump_ms=rng.randint(-7_000, 8_000),
        rate=rng.uniform(MIN_RATE, MAX_RATE),
        errno=errno.EIO,
        operation=operation,
        crash_in_recovery=rng.randrange(60) if rng.random() < 0.25 else None,
    )


def draw_net_faults(rng: random.Random, faults: NetFaults) -> None:
    """Draw network faults between none and severe."""
    if rng.random() < 0.3:
        return
    faults.max_latency_seconds = rng.choice((0.001, 0.01, 0.05))
    faults.short_count = rng.choice((0, 0.05, 0.3))
    faults.fragment = rng.choice((0, 0.05, 0.3))
    faults.slow = rng.choice((0, 0.01))
    faults.reset = rng.choice((0, 0, 0.001, 0.01))
    faults.buffer_bytes = rng.choice((4 * 1024, 64 * 1024, 256 * 1024))


def draw_disk_faults(rng: random.Random, faults: DiskFaults) -> None:
    if rng.random() < 0.3:
        return
    faults.short_write = rng.choice((0, 0.01, 0.1))
    faults.cold_read = rng.choice((0, 0.1, 0.5))
    faults.stall = rng.choice((0, 0.001))


@dataclass(frozen=True, slots=True)
class Settings:
    """How the node is configured."""

    flush_everything: bool
    flush_interval_ms: int | None
    checkpoint_interval_ms: int
    segment_ms: int
    index_interval_bytes: int

    def node_config(self) -> dict[str, str]:
        config = {
            "log.flush.offset.checkpoint.interval.ms": str(self.checkpoint_interval_ms),
            "log.flush.scheduler.interval.ms": "500",
            "log.roll.ms": str(self.segment_ms),
            "log.index.interval.bytes": str(self.index_interval_bytes),
            "offsets.topic.num.partitions": "3",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        }
        if self.flush_everything:
            config["log.flush.interval.messages"] = "1"
        if self.flush_interval_ms is not None:
            config["log.flush.interval.ms"] = str(self.flush_interval_ms)
        return config


def draw_settings(rng: random.Random) -> Settings:
    return Settings(
        flush_everything=rng.random() < 0.3,
        flush_interval_ms=rng.choice((None, 200, 1000)),
        checkpoint_interval_ms=rng.choice((500, 5_000, 60_000)),
        segment_ms=rng.choice((1_500, 6_000, 600_000)),
        index_interval_bytes=rng.choice((1, 512, 4096)),
    )
