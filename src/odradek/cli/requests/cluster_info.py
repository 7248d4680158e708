"""What `odradek cluster info` shows. Reads only."""

from typing import Any

from odradek.cli.requests.cluster_access import ClusterAccess
from odradek.cli.requests.config_admin import BROKER, describe_configs
from odradek.cli.terminal.output import Section, Table, columns
from odradek.core.configs import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS, ConfigSource


def describe_cluster(cluster: ClusterAccess) -> list[Section]:
    """Facts, brokers, and the defaults that differ from Apache Kafka's."""
    metadata = cluster.metadata()
    topics = [topic for topic in metadata.topics if not topic.error_code]
    partitions = [partition for topic in topics for partition in topic.partitions]
    facts: dict[str, Any] = {
        "cluster_id": metadata.cluster_id,
        "controller": metadata.controller_id if metadata.controller_id >= 0 else None,
        "broker_count": len(metadata.brokers),
        "topics": len(topics),
        "partitions": len(partitions),
        "under_replicated": sum(len(p.isr_nodes) < len(p.replica_nodes) for p in partitions),
        "without_leader": sum(p.leader_id < 0 for p in partitions),
        "record_kernel": _kernel(),
    }
    brokers = [
        [broker.node_id, broker.host, broker.port, broker.rack]
        for broker in sorted(metadata.brokers, key=lambda broker: int(broker.node_id))
    ]
    return [
        Section("cluster", facts),
        Section(
            "deviations", Table(columns("CONFIG VALUE APACHE-DEFAULT"), _deviations(cluster, brokers[0][0]))
        ),
        Section("brokers", Table(columns("BROKER# HOST PORT# RACK"), brokers)),
    ]


def _kernel() -> str:
    """Records are walked in C where this installation could build it."""
    from odradek.records import kernel

    return "C" if kernel.NATIVE else "Python (slower: odradek was installed without a C compiler)"


def _deviations(cluster: ClusterAccess, broker_id: int) -> list[list[Any]]:
    """Defaults of this cluster that are not Apache Kafka's."""
    return [
        [entry.name, entry.value, BROKER_KEYS[entry.name].default]
        for entry in describe_configs(cluster, BROKER, str(broker_id))
        if entry.config_source == ConfigSource.DEFAULT
        and entry.name in BROKER_KEYS
        and entry.value is not None
        and BROKER_KEYS[entry.name].default not in (None, entry.value)
    ]


def unsupported_table(cluster: ClusterAccess) -> Table:
    """The configurations that Odradek knows but does not act on yet; what the broker sets comes first."""
    broker_id = cluster.broker_ids()[0]
    given = {
        entry.name: entry.value
        for entry in describe_configs(cluster, BROKER, str(broker_id))
        if entry.config_source != ConfigSource.DEFAULT
    }
    rows = [
        [key.name, resource, given.get(key.name) if resource == "broker" else None, key.default, key.type]
        for resource, keys in (("broker", BROKER_KEYS), ("topic", TOPIC_KEYS), ("group", GROUP_KEYS))
        for key in keys.values()
        if not key.acts and not key.internal
    ]
    rows.sort(key=lambda row: (row[1] != "broker" or row[0] not in given, row[0]))
    return Table(columns("CONFIG RESOURCE SET-TO DEFAULT TYPE"), rows)
