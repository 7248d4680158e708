"""The periodic work of a node: checkpoints, retention, expiry, ISRs, and the measurement of event loop
stalls."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from odradek.broker.metadata_applier import MetadataApplier
from odradek.core.configs import NodeConfig
from odradek.core.metrics import STALL_BOUNDS_US, StallMetrics
from odradek.log.manager import LogManager
from odradek.replication.manager import ReplicaManager
from odradek.runtime.scope import Scope

_log = logging.getLogger(__name__)

STALL_PROBE_S = 0.1
DELETE_TICK_MS = 1_000
OPEN_TICK_MS = 1_000
FLUSH_TICK_MS = 1_000  # a topic's flush.ms acts even if log.flush.scheduler.interval.ms is not set
MAX_INTERVAL_MS = 86_400_000


class _Chore(NamedTuple):
    """Work that runs every `interval_ms`. If that is 0 or less, it runs once, after `delay_ms`."""

    name: str
    interval_ms: int
    delay_ms: int
    work: Callable[[], Awaitable[Any] | None]


def start_chores(
    scope: Scope,
    config: NodeConfig,
    logs: LogManager,
    stalls: StallMetrics,
    applier: MetadataApplier,
    replicas: ReplicaManager,
) -> None:
    """Start all periodic work in the node's scope."""
    delay_ms = config.int("log.initial.task.delay.ms")
    flush_ms = min(config.int("log.flush.scheduler.interval.ms"), FLUSH_TICK_MS)
    recovery_ms = config.int("log.flush.offset.checkpoint.interval.ms")
    start_ms = config.int("log.flush.start.offset.checkpoint.interval.ms")
    high_watermark_ms = config.int("replica.high.watermark.checkpoint.interval.ms")
    retention_ms = config.int("log.retention.check.interval.ms")
    lag_ms = config.int("replica.lag.time.max.ms")
    expiry_ms = config.int("producer.id.expiration.check.interval.ms")
    for chore in (
        _Chore("flush logs", flush_ms, delay_ms, logs.tick_flush),
        _Chore("checkpoint recovery points", recovery_ms, delay_ms, logs.checkpoint_recovery_points),
        _Chore("checkpoint log starts", start_ms, delay_ms, logs.checkpoint_log_starts),
        _Chore("checkpoint high watermarks", high_watermark_ms, 0, logs.checkpoint_high_watermarks),
        _Chore("retention", retention_ms, delay_ms, logs.tick_retention),
        _Chore("delete files", DELETE_TICK_MS, delay_ms, logs.tick_deletes),
        _Chore("open waiting partitions", OPEN_TICK_MS, delay_ms, applier.open_waiting),
        _Chore("shrink ISRs", max(1, lag_ms // 2), 0, replicas.tick_isrs),
        _Chore("expire producers", expiry_ms, delay_ms, logs.tick_producer_expiry),
    ):
        scope.spawn(_carry_out(chore), name=chore.name)
    scope.spawn(_watch_stalls(stalls), name="watch stalls")


async def _carry_out(chore: _Chore) -> None:
    pause_ms = chore.interval_ms if chore.interval_ms > 0 else chore.delay_ms
    while True:
        await asyncio.sleep(min(pause_ms, MAX_INTERVAL_MS) / 1000)
        try:
            result = chore.work()
            if result is not None:
                await result
        except Exception:
            _log.exception("Chore failed: %s", chore.name)
        if chore.interval_ms <= 0:
            return


async def _watch_stalls(stalls: StallMetrics) -> None:
    """Measure how late a timer fires: what delays it delays every client."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + STALL_PROBE_S
        await asyncio.sleep(STALL_PROBE_S)
        late_us = int((loop.time() - due) * 1e6)
        if late_us > STALL_BOUNDS_US[0]:
            stalls.observe(late_us)
