"""What `odradek topic describe` shows of a topic. Reads only."""

from collections.abc import Sequence

from odradek.cli.errors import Failure
from odradek.cli.requests.cluster_access import READ_COMMITTED, ClusterAccess
from odradek.cli.requests.config_admin import TOPIC, describe_configs, source_name
from odradek.cli.terminal.output import Section, Table, columns
from odradek.core.configs import ConfigSource


def describe_topics(
    cluster: ClusterAccess, names: Sequence[str], all_configs: bool
) -> tuple[list[list[Section]], list[Failure]]:
    """The sections of each topic, and what is wrong with those that could not be described."""
    topics, failures = cluster.find_topics(names)
    bounds = cluster.bounds(topics)
    stable = cluster.bounds(topics, READ_COMMITTED)
    described = []
    for topic in topics:
        rows = []
        for partition, tp in zip(topic.partitions, topic.topic_partitions, strict=True):
            start, end = bounds[tp]
            rows.append(
                [
                    partition.partition,
                    partition.leader,
                    partition.leader_epoch,
                    partition.replicas,
                    partition.isr,
                    partition.offline,
                    start,
                    stable[tp][1],
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
        partition_columns = columns(
            "PARTITION# LEADER# EPOCH# REPLICAS ISR OFFLINE+ START-OFFSET# STABLE-OFFSET#+ END-OFFSET#"
        )
        described.append(
            [
                Section("topic", facts),
                Section("configs", Table(columns("CONFIG VALUE SOURCE"), entries)),
                Section("partitions", Table(partition_columns, rows)),
            ]
        )
    return described, failures
