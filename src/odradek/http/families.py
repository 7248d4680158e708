"""The node's numbers under the names that existing dashboards query, as prometheus-client's metric families.

jmx_exporter's names as Strimzi configures it, kafka_exporter's and kafka-lag-exporter's for groups, and our
own where none exists. Everything is read off counters and state that the node keeps anyway; a family is
yielded only where something moves it. None among them is a pause: what is looked through may be long.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from odradek.coordinators.transactions.states import AT_REST
from odradek.core.metrics import STALL_BOUNDS_US, RequestMetrics
from odradek.http.lags import Lags
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.broker.node import Node

ROWS_AT_ONCE = 50
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

# Counter of core.metrics.TopicMetrics, name in Kafka's BrokerTopicMetrics, what it counts.
_TOPIC_COUNTERS = (
    ("bytes_in", "bytesin", "Bytes of records produced"),
    ("bytes_out", "bytesout", "Bytes of records fetched"),
    ("messages_in", "messagesin", "Records produced"),
    ("produces", "totalproducerequests", "Produces to a partition"),
    ("fetches", "totalfetchrequests", "Fetches from a partition"),
    ("failed_produces", "failedproducerequests", "Produces to a partition that were refused"),
    ("failed_fetches", "failedfetchrequests", "Fetches from a partition that failed"),
)


def families(node: "Node", lags: Lags, now_ms: int) -> Iterator[Metric | None]:
    yield from _topics(node)
    yield from _requests(node, now_ms)
    yield from _server(node)
    yield from _controller(node)
    yield from _replicas(node, now_ms)
    yield from _transactions(node, now_ms)
    yield from _logs(node)
    yield from _cleaner(node, now_ms)
    yield from _groups(lags, now_ms)


def _gauge(name: str, documentation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, value)


def _topics(node: "Node") -> Iterator[Metric]:
    present = dict.fromkeys(tp.topic for tp in node.replicas.partitions)
    counted = {name: node.metrics.topics[name] for name in present if name in node.metrics.topics}
    for attribute, name, documentation in _TOPIC_COUNTERS:
        family = CounterMetricFamily(
            f"kafka_server_brokertopicmetrics_{name}", documentation, labels=["topic"]
        )
        for topic, counters in counted.items():
            family.add_metric([topic], getattr(counters, attribute))
        yield family


def _requests(node: "Node", now_ms: int) -> Iterator[Metric]:
    counts = CounterMetricFamily(
        "kafka_network_requestmetrics_requests", "Requests answered", labels=["request", "version"]
    )
    times = SummaryMetricFamily(
        "kafka_network_requestmetrics_totaltimems",
        "Milliseconds from a request's receive to its reply; quantiles over the last one to two minutes",
        labels=["request"],
    )
    for api_key, stats in node.metrics.requests.items():
        stats.roll(now_ms)
        for name in _request_names(api_key):
            for version, count in stats.versions.items():
                counts.add_metric([name, str(version)], count)
            _add_times(times, name, stats)
    yield counts
    yield times


def _request_names(api_key: int) -> tuple[str, ...]:
    """Kafka's names; a consumer's fetch is counted under two of them."""
    if api_key == ApiKey.FETCH:
        return ("Fetch", "FetchConsumer")
    return ("".join(word.capitalize() for word in ApiKey(api_key).name.split("_")),)


def _add_times(times: SummaryMetricFamily, name: str, stats: RequestMetrics) -> None:
    for q in QUANTILES:
        value_us = stats.quantile_us(q)
        if value_us is not None:
            times.add_sample(times.name, {"request": name, "quantile": str(q)}, value_us / 1000)
    times.add_metric([name], stats.count, stats.total_us / 1000)


def _server(node: "Node") -> Iterator[Metric]:
    prefix = "kafka_server_socketservermetrics_connection"
    metrics = node.metrics
    yield CounterMetricFamily(f"{prefix}_creation", "Connections accepted", metrics.connections_created)
    yield CounterMetricFamily(f"{prefix}_close", "Connections closed", metrics.connections_closed)
    open_now = metrics.connections_created - metrics.connections_closed
    yield _gauge(f"{prefix}_count", "Connections open", open_now)
    stalls = HistogramMetricFamily("odradek_loop_stall_seconds", "How late the event loop came to its timers")
    seen, buckets = 0, []
    for bound_us, count in zip(STALL_BOUNDS_US, metrics.stalls.counts, strict=False):
        seen += count
        buckets.append((str(bound_us / 1e6), seen))
    buckets.append(("+Inf", metrics.stalls.count))
    stalls.add_metric([], buckets, metrics.stalls.total_us / 1e6)
    yield stalls


def _controller(node: "Node") -> Iterator[Metric]:
    prefix = "kafka_controller_kafkacontroller"
    image = node.metadata.image
    partitions = [p for topic in image.topics_by_name.values() for p in topic.partitions.values()]
    brokers = image.brokers.values()
    yield _gauge(f"{prefix}_activecontrollercount", "1 on the active controller", node.is_active_controller)
    yield _gauge(f"{prefix}_globaltopiccount", "Topics", len(image.topics_by_name))
    yield _gauge(f"{prefix}_globalpartitioncount", "Partitions", len(partitions))
    yield _gauge(
        f"{prefix}_offlinepartitionscount",
        "Partitions without a leader",
        sum(not p.has_leader for p in partitions),
    )
    yield _gauge(f"{prefix}_activebrokercount", "Brokers that serve", sum(not b.fenced for b in brokers))
    yield _gauge(f"{prefix}_fencedbrokercount", "Brokers that are fenced", sum(b.fenced for b in brokers))
    yield _gauge("kafka_brokers", "Brokers that serve", sum(not b.fenced for b in brokers))


def _replicas(node: "Node", now_ms: int) -> Iterator[Metric]:
    prefix = "kafka_server_replicamanager"
    partitions = node.replicas.partitions.values()
    led = [p for p in partitions if p.is_leader]
    yield _gauge(f"{prefix}_partitioncount", "Partitions on this node", len(partitions))
    yield _gauge(f"{prefix}_leadercount", "Partitions this node leads", len(led))
    yield _gauge(
        f"{prefix}_underreplicatedpartitions",
        "Partitions led here with replicas out of sync",
        sum(len(p.isr.members) < len(p.replicas) for p in led),
    )
    yield _gauge(
        f"{prefix}_underminisrpartitioncount",
        "Partitions led here with fewer in-sync replicas than min.insync.replicas",
        sum(p.under_min_isr for p in led),
    )
    yield _gauge(
        f"{prefix}_offlinereplicacount", "Replicas in failed log directories", len(node.replicas.offline)
    )
    max_timeout_ms = node.transactions.config.max_timeout_ms
    yield _gauge(
        f"{prefix}_partitionswithlatetransactionscount",
        "Partitions led here with a transaction open beyond transaction.max.timeout.ms and five minutes",
        sum(p.log.producers.has_late_transaction(now_ms, max_timeout_ms) for p in led),
    )


def _transactions(node: "Node", now_ms: int) -> Iterator[Metric | None]:
    """Of the transactional ids that this node coordinates; nothing before the first."""
    counts: dict[str, int] = {}
    oldest_ms = now_ms
    for shard in node.transactions.shards():
        for i, txn in enumerate(list(shard.transactions.values())):
            if i % ROWS_AT_ONCE == 0:
                yield None
            counts[txn.state.title] = counts.get(txn.state.title, 0) + 1
            if txn.state not in AT_REST:
                oldest_ms = min(oldest_ms, txn.start_ms)
    if not counts:
        return
    family = GaugeMetricFamily(
        "odradek_transactions", "Transactional ids coordinated here, by state", labels=["state"]
    )
    for state, count in sorted(counts.items()):
        family.add_metric([state], count)
    yield family
    yield _gauge(
        "odradek_txn_oldest_open_seconds",
        "How long the oldest transaction that is not at its end has been open",
        (now_ms - oldest_ms) / 1000,
    )


def _logs(node: "Node") -> Iterator[Metric | None]:
    labels = ["topic", "partition"]
    size = GaugeMetricFamily("kafka_log_log_size", "Bytes in the log", labels=labels)
    start = GaugeMetricFamily("kafka_log_log_logstartoffset", "First offset in the log", labels=labels)
    end = GaugeMetricFamily("kafka_log_log_logendoffset", "Next offset of the log", labels=labels)
    segments = GaugeMetricFamily("kafka_log_log_numlogsegments", "Segments of the log", labels=labels)
    oldest = GaugeMetricFamily("kafka_topic_partition_oldest_offset", "First offset to read", labels=labels)
    current = GaugeMetricFamily(
        "kafka_topic_partition_current_offset", "Next offset to be read (the high watermark)", labels=labels
    )
    counts: dict[str, int] = {}
    for i, ((topic, index), partition) in enumerate(list(node.replicas.partitions.items())):
        if i % ROWS_AT_ONCE == 0:
            yield None
        at, log = [topic, str(index)], partition.log
        size.add_metric(at, log.size_bytes)
        start.add_metric(at, log.log_start_offset)
        end.add_metric(at, log.log_end_offset)
        segments.add_metric(at, len(log.segments))
        oldest.add_metric(at, log.log_start_offset)
        current.add_metric(at, log.high_watermark)
        counts[topic] = counts.get(topic, 0) + 1
    yield from (size, start, end, segments, oldest, current)
    family = GaugeMetricFamily("kafka_topic_partitions", "Partitions of the topic", labels=["topic"])
    for topic, count in counts.items():
        family.add_metric([topic], count)
    yield family


def _cleaner(node: "Node", now_ms: int) -> Iterator[Metric]:
    prefix, cleaner = "kafka_log_logcleaner", node.cleaner
    dirty_percent = int(100 * cleaner.max_dirty_ratio)
    yield _gauge(
        f"{prefix}manager_max_dirty_percent", "Share of the dirtiest log to be cleaned", dirty_percent
    )
    since_ms = max(0, now_ms - cleaner.last_look_ms)
    yield _gauge(f"{prefix}manager_time_since_last_run_ms", "Since logs to clean were looked for", since_ms)
    count = GaugeMetricFamily(
        f"{prefix}manager_uncleanable_partitions_count",
        "Logs that cannot be cleaned",
        labels=["logDirectory"],
    )
    size = GaugeMetricFamily(
        f"{prefix}manager_uncleanable_bytes", "Bytes of logs that cannot be cleaned", labels=["logDirectory"]
    )
    for directory in node.logs.directories:
        stuck = [log for log in cleaner.uncleanable if log.directory == directory.path]
        count.add_metric([directory.path], len(stuck))
        size.add_metric([directory.path], sum(log.size_bytes for log in stuck))
    yield from (count, size)
    yield _gauge(
        f"{prefix}_cleaner_recopy_percent",
        "Share of what the last cleaning read that it wrote again",
        100 * cleaner.recopied_ratio,
    )
    yield _gauge(f"{prefix}_max_clean_time_secs", "Duration of the last cleaning", cleaner.last_clean_seconds)
    yield CounterMetricFamily("odradek_cleaner_cleanings", "Logs cleaned", cleaner.cleanings)
    yield CounterMetricFamily("odradek_cleaner_read_bytes", "Bytes read by cleanings", cleaner.read_bytes)
    yield CounterMetricFamily(
        "odradek_cleaner_written_bytes", "Bytes written by cleanings", cleaner.written_bytes
    )


def _groups(lags: Lags, now_ms: int) -> Iterator[Metric | None]:
    """A lag is never negative, and absent without a commit."""
    by_partition = ["consumergroup", "topic", "partition"]
    members = GaugeMetricFamily(
        "kafka_consumergroup_members", "Members of the group", labels=["consumergroup"]
    )
    offset = GaugeMetricFamily("kafka_consumergroup_current_offset", "Committed offset", labels=by_partition)
    lag = GaugeMetricFamily("kafka_consumergroup_lag", "Offsets behind the end", labels=by_partition)
    lag_sum = GaugeMetricFamily(
        "kafka_consumergroup_lag_sum", "Offsets behind the end", labels=["consumergroup", "topic"]
    )
    seconds = GaugeMetricFamily(
        "kafka_consumergroup_group_lag_seconds",
        "Age of the first record the group has not read",
        labels=["group", "topic", "partition"],
    )
    groups = GaugeMetricFamily(
        "odradek_groups", "Groups coordinated here, by protocol and state", labels=["protocol", "state"]
    )
    counts: dict[tuple[str, str], int] = {}
    sums: dict[tuple[str, str], int] = {}
    since_pause = 0
    for group in lags.groups(now_ms):
        since_pause += 1 + len(group.rows)
        if since_pause >= ROWS_AT_ONCE:
            yield None
            since_pause = 0
        counts[group.protocol, group.state] = counts.get((group.protocol, group.state), 0) + 1
        members.add_metric([group.name], group.members)
        for row in group.rows:
            at = [group.name, row.topic, str(row.partition)]
            offset.add_metric(at, row.committed)
            lag.add_metric(at, row.lag)
            if row.lag_ms is not None:
                seconds.add_metric(at, row.lag_ms / 1000)
            sums[group.name, row.topic] = sums.get((group.name, row.topic), 0) + row.lag
    for (name, topic), total in sums.items():
        lag_sum.add_metric([name, topic], total)
    for (protocol, state), count in sorted(counts.items()):
        groups.add_metric([protocol, state], count)
    yield from (groups, members, offset, lag, lag_sum, seconds)
