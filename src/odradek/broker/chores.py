"""What a node does by the clock: checkpoints, retention, expiry, and a look at how late its own clock is."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.core.configs import NodeConfig
from odradek.core.metrics import STALL_BOUNDS_US, StallMetrics
from odradek.log.manager import LogManager
from odradek.runtime.scope import Scope

log = logging.getLogger("odradek.broker.chores")

STALL_PROBE_S = 0.1
DELETE_TICK_MS = 1_000
OPEN_TICK_MS = 1_000
FLUSH_TICK_MS = 1_000  # so that a topic's flush.ms acts without log.flush.scheduler.interval.ms being set
MAX_INTERVAL_MS = 86_400_000


def start_chores(
    scope: Scope,
    config: NodeConfig,
    logs: LogManager,
    stalls: StallMetrics,
    open_waiting: Callable[[], None],
) -> None:
    """Spawn every chore into the node's scope."""
    for name, interval_ms, work in (
        ("flush logs", min(config.int("log.flush.scheduler.interval.ms"), FLUSH_TICK_MS), logs.tick_flush),
        (
            "checkpoint recovery points",
            config.int("log.flush.offset.checkpoint.interval.ms"),
            logs.checkpoint_recovery_points,
        ),
        (
            "checkpoint log starts",
            config.int("log.flush.start.offset.checkpoint.interval.ms"),
            logs.checkpoint_log_starts,
        ),
        (
            "checkpoint high watermarks",
            config.int("replica.high.watermark.checkpoint.interval.ms"),
            logs.checkpoint_high_watermarks,
        ),
        ("retention", config.int("log.retention.check.interval.ms"), logs.tick_retention),
        ("delete files", DELETE_TICK_MS, logs.tick_deletes),
        ("open waiting partitions", OPEN_TICK_MS, open_waiting),
        (
            "expire producers",
            config.int("producer.id.expiration.check.interval.ms"),
            logs.tick_producer_expiry,
        ),
    ):
        scope.spawn(_every(min(interval_ms, MAX_INTERVAL_MS), work, name), name=name)
    scope.spawn(_watch_stalls(stalls), name="watch stalls")


async def _every(interval_ms: int, work: Callable[[], Any | Awaitable[Any]], name: str) -> None:
    while True:
        await asyncio.sleep(interval_ms / 1000)
        try:
            result = work()
            if asyncio.iscoroutine(result):
                await result
        except Exception:
            log.exception("Chore failed: %s", name)


async def _watch_stalls(stalls: StallMetrics) -> None:
    """Count how late a timer fires: whatever held it up held every client up."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + STALL_PROBE_S
        await asyncio.sleep(STALL_PROBE_S)
        late_us = int((loop.time() - due) * 1e6)
        if late_us > STALL_BOUNDS_US[0]:
            stalls.observe(late_us)
