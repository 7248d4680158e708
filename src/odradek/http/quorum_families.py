"""The quorum as this replica sees it, and how far this node follows its log, as metric families.

Kafka's raft-metrics, raft-channel-metrics and broker-metadata-metrics, and what of KafkaController is of the
log, under jmx_exporter's names as Strimzi configures it.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from odradek.controller.elections import ElectionKind
from odradek.core.metrics import QUANTILES, TimeMetrics
from odradek.http.rows import gauge

if TYPE_CHECKING:
    from odradek.controller.quorum import QuorumController
    from odradek.http.observed import Observed
    from odradek.raft.driver import RaftDriver

_RAFT = "kafka_server_raftmetrics"
_CHANNEL = "kafka_server_raftchannelmetrics"
_CONTROLLER = "kafka_controller_kafkacontroller"
_EVENTS = "kafka_controller_controllereventmanager"
_STATS = "kafka_controller_controllerstats"
_BROKER = "kafka_server_brokermetadatametrics"


def quorum(node: "Observed", now_ms: int) -> Iterator[Metric]:
    raft = node.quorum.raft
    yield from _replica(raft)
    yield from _measured(raft)
    yield from _channel(raft)
    yield from _followed(node, now_ms)
    if node.quorum.local is not None:
        yield from decisions(node.quorum.local, now_ms)


def _replica(raft: "RaftDriver") -> Iterator[Metric]:
    """The state is a label: a text is no number."""
    machine = raft.node
    state = GaugeMetricFamily(
        f"{_RAFT}_current_state", "1 for the role of this node", labels=["current_state"]
    )
    state.add_metric([type(machine.role).__name__.lower()], 1)
    yield state
    voted = machine.role.voted
    yield gauge(f"{_RAFT}_current_leader", "Node that leads, -1 without one", machine.leader_id)
    yield gauge(
        f"{_RAFT}_current_vote",
        "Node voted for in this epoch, -1 without one",
        -1 if voted is None else voted.id,
    )
    yield gauge(f"{_RAFT}_current_epoch", "Epoch of the leader", raft.epoch)
    yield gauge(f"{_RAFT}_high_watermark", "Committed end of the metadata log", raft.high_watermark)
    yield gauge(f"{_RAFT}_log_end_offset", "End of the metadata log", raft.log_end_offset)
    yield gauge(f"{_RAFT}_log_end_epoch", "Epoch of the last record", machine.log_end_epoch)
    voters = machine.voters
    yield gauge(f"{_RAFT}_number_of_voters", "Voters", 0 if voters is None else len(voters.ids))
    yield gauge(
        f"{_RAFT}_number_of_observers",
        "Observers that fetch from this leader, -1 elsewhere",
        len(machine.replicas()[1]) if machine.is_leader else -1,
    )


def _measured(raft: "RaftDriver") -> Iterator[Metric]:
    metrics, now_ms = raft.metrics, raft.now_ms()
    for name, recent, what in (
        ("election_latency", metrics.elections, "Milliseconds until there was a leader again"),
        ("commit_latency", metrics.commits, "Milliseconds from an append of this leader to its commit"),
    ):
        yield gauge(f"{_RAFT}_{name}_avg", what, recent.average(now_ms))
        yield gauge(f"{_RAFT}_{name}_max", what, recent.maximum(now_ms))
    yield gauge(
        f"{_RAFT}_append_records_rate",
        "Records appended by this leader in a second",
        metrics.appended.per_second(now_ms),
    )
    yield gauge(
        f"{_RAFT}_fetch_records_rate",
        "Records fetched from the leader in a second",
        metrics.fetched.per_second(now_ms),
    )
    yield gauge(
        f"{_RAFT}_poll_idle_ratio_avg", "Share of time without work of the quorum", metrics.idle_ratio(now_ms)
    )


def _channel(raft: "RaftDriver") -> Iterator[Metric]:
    """To and from the other replicas; a node alone has none."""
    traffic = raft.traffic
    yield CounterMetricFamily(f"{_CHANNEL}_request", "Requests to other replicas", traffic.requests)
    yield CounterMetricFamily(f"{_CHANNEL}_response", "Responses of other replicas", traffic.responses)
    yield CounterMetricFamily(f"{_CHANNEL}_outgoing_byte", "Bytes to other replicas", traffic.sent_bytes)
    yield CounterMetricFamily(f"{_CHANNEL}_incoming_byte", "Bytes of responses", traffic.received_bytes)


def _followed(node: "Observed", now_ms: int) -> Iterator[Metric]:
    """How far the image is, and how old its last record. The active controller has made that record."""
    side, image = node.quorum, node.metadata.image
    errors = side.loader.failure is not None
    is_known = image.timestamp_ms >= 0
    lag_ms = max(0, now_ms - image.timestamp_ms) if is_known else math.nan
    for prefix, separator, lag in (
        (_BROKER, "_", lag_ms),
        (_CONTROLLER, "", 0 if side.is_active else lag_ms),
    ):
        if side.local is None and prefix == _CONTROLLER:
            continue
        names = (separator.join(words) for words in _WORDS)
        for name, text, value in zip(
            names,
            ("Offset of the last record applied", "Its timestamp", "How old it is, in milliseconds"),
            (image.offset, image.timestamp_ms, lag),
            strict=True,
        ):
            yield gauge(f"{prefix}_{name}", text, value)
    yield gauge(f"{_BROKER}_metadata_load_error_count", "Records of the log that could not be read", errors)
    if side.local is not None:
        raft = side.raft
        yield gauge(
            f"{_CONTROLLER}_lastcommittedrecordoffset", "Last committed offset", raft.high_watermark - 1
        )
        yield gauge(
            f"{_CONTROLLER}_metadataerrorcount",
            "Failures of the metadata log on this controller",
            errors + (raft.failure is not None),
        )
        yield gauge(
            f"{_CONTROLLER}_newactivecontrollerscount",
            "Leaders that this node has seen",
            raft.metrics.new_leaders,
        )


_WORDS = (
    ("last", "applied", "record", "offset"),
    ("last", "applied", "record", "timestamp"),
    ("last", "applied", "record", "lag", "ms"),
)


def decisions(local: "QuorumController", now_ms: int) -> Iterator[Metric]:
    metrics = local.metrics
    yield gauge(
        f"{_CONTROLLER}_timedoutbrokerheartbeatcount",
        "Heartbeats answered after half a session",
        metrics.timed_out_heartbeats,
    )
    yield CounterMetricFamily(
        f"{_STATS}_uncleanleaderelections",
        "Leaders elected uncleanly by this controller",
        metrics.elections[ElectionKind.UNCLEAN],
    )
    yield CounterMetricFamily(
        f"{_STATS}_electionfromeligibleleaderreplicas",
        "Leaders elected by this controller from outside the ISR that were complete",
        metrics.elections[ElectionKind.ELR],
    )
    yield _times(
        f"{_EVENTS}_eventqueuetimems", "Milliseconds a decision waited for its turn", metrics.queue, now_ms
    )
    yield _times(
        f"{_EVENTS}_eventqueueprocessingtimems", "Milliseconds a decision took", metrics.processing, now_ms
    )


def _times(name: str, documentation: str, times: TimeMetrics, now_ms: int) -> Metric:
    times.roll(now_ms)
    family = SummaryMetricFamily(name, documentation)
    for q in QUANTILES:
        value_us = times.quantile_us(q)
        if value_us is not None:
            family.add_sample(name, {"quantile": str(q)}, value_us / 1000)
    family.add_metric([], times.count, times.total_us / 1000)
    return family
