"""The node's numbers under the names that existing dashboards query, as prometheus-client's metric families.

jmx_exporter's names as Strimzi configures it, kafka_exporter's and kafka-lag-exporter's for groups, and our
own where none exists. Everything is read off counters and state that the node keeps anyway; a family is
yielded only where something moves it. None among them is a pause: what is looked through may be long.
Partitions are partition_families.py's, the cluster as its controller sees it controller_families.py's, its
quorum quorum_families.py's, the process and its loop process_families.py's.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from odradek.coordinators.transactions.states import AT_REST
from odradek.core.metrics import QUANTILES, RequestMetrics
from odradek.http.controller_families import controller
from odradek.http.lags import Lags
from odradek.http.partition_families import partitions
from odradek.http.process_families import connections, loop
from odradek.http.quorum_families import quorum
from odradek.http.rows import ROWS_AT_ONCE, gauge
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.http.observed import Observed

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


def families(
    node: "Observed", lags: Lags, idle_share: float, process: Sequence[Metric], now_ms: int
) -> Iterator[Metric | None]:
    yield from _topics(node)
    yield from _requests(node, now_ms)
    yield from connections(node)
    yield from loop(node, idle_share)
    yield from process
    yield from controller(node)
    yield from quorum(node, now_ms)
    yield from partitions(node, now_ms)
    yield from _transactions(node, now_ms)
    yield from _cleaner(node, now_ms)
    yield from _groups(lags, now_ms)


def _topics(node: "Observed") -> Iterator[Metric | None]:
    """In the order in which their first partitions came to this node."""
    counted = {}
    for i, (topic, _) in enumerate(list(node.replicas.partitions)):
        if i % (20 * ROWS_AT_ONCE) == 0:
            yield None
        if topic in node.metrics.topics:
            counted[topic] = node.metrics.topics[topic]
    for attribute, name, documentation in _TOPIC_COUNTERS:
        family = CounterMetricFamily(
            f"kafka_server_brokertopicmetrics_{name}", documentation, labels=["topic"]
        )
        for i, (topic, counters) in enumerate(counted.items()):
            if i % (4 * ROWS_AT_ONCE) == 0:
                yield None
            family.add_metric([topic], getattr(counters, attribute))
        yield family


def _requests(node: "Observed", now_ms: int) -> Iterator[Metric]:
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


def _transactions(node: "Observed", now_ms: int) -> Iterator[Metric | None]:
    """Of the transactional ids that this node coordinates; nothing before the first."""
    counts: dict[str, int] = {}
    oldest_ms = now_ms
    for shard in list(node.transactions.shards()):
        for i, txn in enumerate(list(shard.transactions.values())):
            if i and i % (4 * ROWS_AT_ONCE) == 0:
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
    yield gauge(
        "odradek_txn_oldest_open_seconds",
        "Age of the oldest transaction that has not ended",
        (now_ms - oldest_ms) / 1000,
    )


def _cleaner(node: "Observed", now_ms: int) -> Iterator[Metric]:
    prefix, cleaner = "kafka_log_logcleaner", node.cleaner
    dirty_percent = int(100 * cleaner.max_dirty_ratio)
    yield gauge(f"{prefix}manager_max_dirty_percent", "Dirty share of the dirtiest log", dirty_percent)
    since_ms = max(0, now_ms - cleaner.last_look_ms)
    yield gauge(
        f"{prefix}manager_time_since_last_run_ms", "Time since the cleaner last looked for logs", since_ms
    )
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
    yield gauge(
        f"{prefix}_cleaner_recopy_percent",
        "Bytes that the last cleaning wrote, in percent of those it read",
        100 * cleaner.recopied_ratio,
    )
    yield gauge(f"{prefix}_max_clean_time_secs", "Duration of the last cleaning", cleaner.last_clean_seconds)
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
        if group is None:
            yield None
            continue
        since_pause += 1
        counts[group.protocol, group.state] = counts.get((group.protocol, group.state), 0) + 1
        members.add_metric([group.name], group.members)
        if since_pause >= ROWS_AT_ONCE:
            yield None
            since_pause = 0
        for row in group.rows:
            since_pause += 1
            if since_pause >= ROWS_AT_ONCE:
                yield None
                since_pause = 0
            at = [group.name, row.topic, str(row.partition)]
            offset.add_metric(at, row.committed)
            lag.add_metric(at, row.lag)
            if row.lag_ms is not None:
                seconds.add_metric(at, row.lag_ms / 1000)
            sums[group.name, row.topic] = sums.get((group.name, row.topic), 0) + row.lag
    for i, ((name, topic), total) in enumerate(sums.items()):
        if i and i % (4 * ROWS_AT_ONCE) == 0:
            yield None
        lag_sum.add_metric([name, topic], total)
    for (protocol, state), count in sorted(counts.items()):
        groups.add_metric([protocol, state], count)
    yield from (groups, members, offset, lag, lag_sum, seconds)
