"""What `odradek topic describe` shows of a topic. Reads only."""

from collections.abc import Sequence

from odradek.cli.errors import Failure
from odradek.cli.requests.cluster_access import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    ClusterAccess,
    TopicInfo,
)
from odradek.cli.requests.config_admin import TOPIC, describe_configs, source_name
from odradek.cli.requests.replication import LogEnds, log_ends, with_eligible_leaders
from odradek.cli.terminal.output import Section, Table, columns
from odradek.core.configs import ConfigSource
from odradek.core.types import TopicPartition

_PARTITIONS = (
    "PARTITION# LEADER# EPOCH# REPLICAS ISR ELR LAST-KNOWN-ELR+ OFFLINE LAG START-OFFSET# STABLE-OFFSET#+ "
    "END-OFFSET#"
)
"""LAG has a number for each of REPLICAS: how many records it is behind the leader."""


def describe_topics(
    cluster: ClusterAccess, names: Sequence[str], all_configs: bool
) -> tuple[list[list[Section]], list[Failure]]:
    """The sections of each topic, and what is wrong with those that could not be described."""
    found, failures = cluster.find_topics(names)
    topics = with_eligible_leaders(cluster, found)
    bounds = _bounds(cluster, topics)
    ends = _log_ends(cluster, topics)
    described = []
    for topic in topics:
        rows = []
        for partition, tp in zip(topic.partitions, topic.topic_partitions, strict=True):
            start, stable, end = bounds.get(tp, (None, None, None))
            rows.append(
                [
                    partition.partition,
                    partition.leader,
                    partition.leader_epoch,
                    partition.replicas,
                    partition.isr,
                    partition.elr,
                    partition.last_known_elr,
                    partition.offline,
                    [
                        0 if replica == partition.leader else ends.lag(tp, replica, partition.leader)
                        for replica in partition.replicas
                    ],
                    start,
                    stable,
                    end,
                ]
            )
        entries = [
            [entry.name, entry.value, source_name(entry.config_source)]
            for entry in describe_configs(cluster, TOPIC, topic.name)
            if all_configs or entry.config_source != ConfigSource.DEFAULT
        ]
        facts = {
            "topic": topic.name,
            "id": topic.id,
            "internal": topic.is_internal,
            "partition_count": len(topic.partitions),
            "replicas": topic.replication_factor,
        }
        described.append(
            [
                Section("topic", facts),
                Section("configs", Table(columns("CONFIG VALUE SOURCE"), entries)),
                Section("partitions", Table(columns(_PARTITIONS), rows)),
            ]
        )
    return described, failures


def _bounds(
    cluster: ClusterAccess, topics: Sequence[TopicInfo]
) -> dict[TopicPartition, tuple[int, int, int]]:
    """Start, stable and end offset of the partitions that have a leader."""
    led = [
        tp
        for topic in topics
        for partition, tp in zip(topic.partitions, topic.topic_partitions, strict=True)
        if partition.leader is not None
    ]
    starts = cluster.list_offsets(topics, led, EARLIEST)
    stable = cluster.list_offsets(topics, led, LATEST, READ_COMMITTED)
    ends = cluster.list_offsets(topics, led, LATEST)
    return {tp: (starts[tp] or 0, stable[tp] or 0, ends[tp] or 0) for tp in led}


def _log_ends(cluster: ClusterAccess, topics: Sequence[TopicInfo]) -> LogEnds:
    """Of topics with more than one replica."""
    several = [topic for topic in topics if any(len(p.replicas) > 1 for p in topic.partitions)]
    return log_ends(cluster, several, cluster.broker_ids()) if several else LogEnds({}, {})
