"""Where the replicas of new partitions go: leaders in turn over the brokers, followers spread. Pure."""

import random
from collections.abc import Iterable

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import BrokerRegistration
from odradek.runtime.slices import FEW, Paced


def place_replicas(
    brokers: Iterable[BrokerRegistration], partitions: int, replication_factor: int, rng: random.Random
) -> Paced[list[tuple[int, ...]]]:
    """Replicas for each of `partitions` new partitions, the preferred leader first.

    Fenced brokers are used only when there are not enough others, and never first. A broker whose log
    directories are all cordoned takes nothing.
    """
    usable = sorted((b for b in brokers if not _is_cordoned(b)), key=lambda b: b.id)
    active = [b.id for b in usable if not b.fenced]
    fenced = [b.id for b in usable if b.fenced]
    if replication_factor > len(usable):
        raise _cannot(
            replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(usable)} broker(s) are registered or some brokers have all their log directories "
            "cordoned.",
        )
    if not active:
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
        raise _cannot(replication_factor, reason)
    start = rng.randrange(len(active) * max(1, len(active) - 1))
    rows = []
    for i in range(partitions):
        rows.append(_row(active, fenced, start + i, replication_factor))
        yield FEW * (1 + replication_factor)
    return rows


def _row(active: list[int], fenced: list[int], turn: int, replication_factor: int) -> tuple[int, ...]:
    """Each round over the leaders puts another distance between a leader and its followers."""
    n = len(active)
    first, shift = turn % n, turn // n
    row = [active[first]]
    for i in range(min(replication_factor, n) - 1):
        row.append(active[(first + 1 + (shift + i) % (n - 1)) % n])
    for i in range(replication_factor - len(row)):
        row.append(fenced[(turn + i) % len(fenced)])
    return tuple(row)


def _is_cordoned(broker: BrokerRegistration) -> bool:
    cordoned = broker.cordoned_log_dirs
    return bool(cordoned) and set(broker.log_dirs) <= set(cordoned or ())


def _cannot(replication_factor: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}",
    )
