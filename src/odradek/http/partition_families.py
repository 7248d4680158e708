"""Partitions as metric families: their replicas, their logs, and how many of them are in trouble.

jmx_exporter's names for what a broker says of itself, kafka_exporter's for what is asked of a cluster. All of
it comes from one walk along the partitions, with pauses: there may be many.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from odradek.http.rows import ROWS_AT_ONCE, gauge

if TYPE_CHECKING:
    from odradek.http.observed import Observed
    from odradek.replication.leader import PartitionLeader
    from odradek.replication.partition import Partition

_LABELS = ["topic", "partition"]


def partitions(node: "Observed", now_ms: int) -> Iterator[Metric | None]:
    logs, led, counts = _Logs(), _Led(), _Counts()
    max_timeout_ms = node.transactions.config.max_timeout_ms
    for i, ((topic, index), partition) in enumerate(list(node.replicas.partitions.items())):
        if i % ROWS_AT_ONCE == 0:
            yield None
        at = [topic, str(index)]
        logs.add(at, partition)
        counts.add(topic, partition)
        if partition.leader is not None:
            led.add(at, partition, partition.leader)
            counts.late += partition.log.producers.has_late_transaction(now_ms, max_timeout_ms)
    yield from counts.families(len(node.replicas.offline))
    yield from _isr_changes(node)
    yield from led.families
    yield from logs.families
    family = GaugeMetricFamily("kafka_topic_partitions", "Partitions of the topic", labels=["topic"])
    for i, (topic, count) in enumerate(counts.by_topic.items()):
        if i and i % (4 * ROWS_AT_ONCE) == 0:
            yield None
        family.add_metric([topic], count)
    yield family


def _isr_changes(node: "Observed") -> Iterator[Metric]:
    prefix, counted = "kafka_server_replicamanager", node.metrics.isr
    yield CounterMetricFamily(f"{prefix}_isrexpands", "Replicas that joined an ISR led here", counted.expands)
    yield CounterMetricFamily(f"{prefix}_isrshrinks", "Shrinks of an ISR led here", counted.shrinks)
    yield CounterMetricFamily(
        f"{prefix}_failedisrupdates",
        "Changes of an ISR led here that the controller refused",
        counted.failed_updates,
    )


def _family(name: str, documentation: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, labels=_LABELS)


class _Logs:
    """What is on this node's disks, led here or not."""

    def __init__(self) -> None:
        self._size = _family("kafka_log_log_size", "Bytes in the log")
        self._start = _family("kafka_log_log_logstartoffset", "First offset in the log")
        self._end = _family("kafka_log_log_logendoffset", "Next offset of the log")
        self._segments = _family("kafka_log_log_numlogsegments", "Segments of the log")
        self._oldest = _family("kafka_topic_partition_oldest_offset", "First offset to read")
        self._current = _family(
            "kafka_topic_partition_current_offset", "Next offset to be read (the high watermark)"
        )
        self.families = (self._size, self._start, self._end, self._segments, self._oldest, self._current)

    def add(self, at: list[str], partition: "Partition") -> None:
        log = partition.log
        self._size.add_metric(at, log.size_bytes)
        self._start.add_metric(at, log.log_start_offset)
        self._end.add_metric(at, log.log_end_offset)
        self._segments.add_metric(at, len(log.segments))
        self._oldest.add_metric(at, log.log_start_offset)
        self._current.add_metric(at, log.high_watermark)


class _Led:
    """What a leader knows of the replicas of its partitions. Summed over the cluster, each counts once."""

    def __init__(self) -> None:
        exporter, cluster = "kafka_topic_partition", "kafka_cluster_partition"
        self._replicas = _family(f"{exporter}_replicas", "Replicas")
        self._in_sync = _family(f"{exporter}_in_sync_replica", "Replicas in sync")
        self._under = _family(f"{exporter}_under_replicated_partition", "1 with replicas out of sync")
        self._preferred = _family(f"{exporter}_leader_is_preferred", "1 where the first replica leads")
        self._count = _family(f"{cluster}_replicascount", "Replicas")
        self._in_sync_count = _family(f"{cluster}_insyncreplicascount", "Replicas in sync")
        self._under_replicated = _family(f"{cluster}_underreplicated", "1 with replicas out of sync")
        self._at_min = _family(f"{cluster}_atminisr", "1 with min.insync.replicas in sync and no more")
        self._under_min = _family(f"{cluster}_underminisr", "1 with fewer than min.insync.replicas in sync")
        self._stable_lag = _family(
            f"{cluster}_laststableoffsetlag", "Offsets between the last stable offset and the high watermark"
        )
        self.families = (
            self._replicas,
            self._in_sync,
            self._under,
            self._preferred,
            self._count,
            self._in_sync_count,
            self._under_replicated,
            self._at_min,
            self._under_min,
            self._stable_lag,
        )

    def add(self, at: list[str], partition: "Partition", leader: "PartitionLeader") -> None:
        replicas, in_sync, log = len(leader.replicas), len(leader.isr.members), partition.log
        self._replicas.add_metric(at, replicas)
        self._in_sync.add_metric(at, in_sync)
        self._under.add_metric(at, leader.is_under_replicated)
        self._preferred.add_metric(at, leader.replicas[0] == partition.broker_id)
        self._count.add_metric(at, replicas)
        self._in_sync_count.add_metric(at, in_sync)
        self._under_replicated.add_metric(at, leader.is_under_replicated)
        self._at_min.add_metric(at, leader.at_min_isr)
        self._under_min.add_metric(at, leader.under_min_isr)
        self._stable_lag.add_metric(at, log.high_watermark - log.last_stable_offset)


class _Counts:
    """How many partitions are so and so."""

    def __init__(self) -> None:
        self.by_topic: dict[str, int] = {}
        self.late = 0
        self._led = self._under_replicated = self._at_min_isr = self._under_min_isr = 0

    def add(self, topic: str, partition: "Partition") -> None:
        self.by_topic[topic] = self.by_topic.get(topic, 0) + 1
        leader = partition.leader
        if leader is not None:
            self._led += 1
            self._under_replicated += leader.is_under_replicated
            self._at_min_isr += leader.at_min_isr
            self._under_min_isr += leader.under_min_isr

    def families(self, offline: int) -> Iterator[Metric]:
        prefix = "kafka_server_replicamanager"
        yield gauge(f"{prefix}_partitioncount", "Partitions on this node", sum(self.by_topic.values()))
        yield gauge(f"{prefix}_leadercount", "Partitions this node leads", self._led)
        yield gauge(
            f"{prefix}_underreplicatedpartitions",
            "Partitions led here with replicas out of sync",
            self._under_replicated,
        )
        yield gauge(
            f"{prefix}_atminisrpartitioncount",
            "Partitions led here with min.insync.replicas in sync and no more",
            self._at_min_isr,
        )
        yield gauge(
            f"{prefix}_underminisrpartitioncount",
            "Partitions led here with fewer in-sync replicas than min.insync.replicas",
            self._under_min_isr,
        )
        yield gauge(f"{prefix}_offlinereplicacount", "Replicas in failed log directories", offline)
        yield gauge(
            f"{prefix}_partitionswithlatetransactionscount",
            "Partitions led here with a transaction open beyond transaction.max.timeout.ms and five minutes",
            self.late,
        )
