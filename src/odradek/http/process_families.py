"""The process, its connections and its event loop as metric families.

`process` reads /proc, which may take a moment with many descriptors: it is for another thread.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from odradek.core.metrics import STALL_BOUNDS_US
from odradek.http.rows import gauge

if TYPE_CHECKING:
    from odradek.http.observed import Observed

_ONE_LOOP = "0"
_IO = Path("/proc/self/io")


def loop(node: "Observed", idle_share: float) -> Iterator[Metric]:
    """One loop reads requests and handles them: it is idle for both at once."""
    documentation = "Share of time in which the event loop was idle"
    yield gauge("kafka_network_socketserver_networkprocessoravgidle_percent", documentation, idle_share)
    yield gauge(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", documentation, idle_share
    )
    stalls = node.metrics.stalls
    family = HistogramMetricFamily("odradek_loop_stall_seconds", "Delay of the event loop's timers")
    seen, buckets = 0, []
    for bound_us, count in zip(STALL_BOUNDS_US, stalls.counts, strict=False):
        seen += count
        buckets.append((str(bound_us / 1e6), seen))
    buckets.append(("+Inf", stalls.count))
    family.add_metric([], buckets, stalls.total_us / 1e6)
    yield family


def connections(node: "Observed") -> Iterator[Metric]:
    """By listener. Kafka has a series for each of its network threads, too; there is one here."""
    prefix, labels = "kafka_server_socket_server_metrics_connection", ["listener", "networkProcessor"]
    created = CounterMetricFamily(f"{prefix}_creation", "Connections accepted", labels=labels)
    closed = CounterMetricFamily(f"{prefix}_close", "Connections closed", labels=labels)
    count = GaugeMetricFamily(f"{prefix}_count", "Connections open", labels=labels)
    for listener, counters in node.metrics.connections.items():
        at = [listener, _ONE_LOOP]
        created.add_metric(at, counters.created)
        closed.add_metric(at, counters.closed)
        count.add_metric(at, counters.created - counters.closed)
    yield from (created, closed, count)


def process() -> list[Metric]:
    """What the operating system says: under Prometheus' own names, and Kafka's for the disk."""
    return [*ProcessCollector(registry=None).collect(), *_disk()]


def _disk() -> Iterator[Metric]:
    try:
        lines = _IO.read_text().splitlines()
    except OSError:  # not Linux, or not allowed
        return
    counted = dict(line.split(": ") for line in lines)
    prefix = "kafka_server_kafkaserver_linux_disk"
    yield gauge(f"{prefix}_read_bytes", "Bytes this process made disks read", int(counted["read_bytes"]))
    yield gauge(f"{prefix}_write_bytes", "Bytes this process made disks write", int(counted["write_bytes"]))
