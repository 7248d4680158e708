"""What is wrong with a cluster, the worst first, each with its cause and what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from odradek.cli.requests.cluster_access import ClusterAccess, PartitionInfo, TopicInfo
from odradek.cli.requests.quorum import Quorum, describe_quorum
from odradek.cli.requests.replication import (
    min_insync_replicas,
    registered_brokers,
    with_eligible_leaders,
)

_LATE_MS: Final = 5_000
"""A voter fetches every half second; one that did not for so long is in trouble."""
_NAMED: Final = 3

_Named = tuple[str, PartitionInfo]
"""A topic's name with one of its partitions."""


class Finding(NamedTuple):
    problem: str
    cause: str
    next: str


class Health(NamedTuple):
    quorum: Quorum | None
    brokers: Mapping[int, bool]
    """Whether each one is fenced."""
    topics: Sequence[TopicInfo]
    min_isr: Mapping[str, int] = {}
    """min.insync.replicas of the topics with replicas that are not in sync."""


def examine(properties: Mapping[str, str], cluster: ClusterAccess) -> Health:
    quorum = describe_quorum(properties)
    brokers = {broker_id: broker.is_fenced for broker_id, broker in registered_brokers(cluster).items()}
    topics = cluster.topics()
    lagging = [topic for topic in topics if any(_is_under_replicated(p) for p in topic.partitions)]
    eligible = {topic.name: topic for topic in with_eligible_leaders(cluster, lagging)}
    min_isr = min_insync_replicas(cluster, list(eligible))
    return Health(quorum, brokers, [eligible.get(topic.name, topic) for topic in topics], min_isr)


def _is_under_replicated(partition: PartitionInfo) -> bool:
    return len(partition.isr) < len(partition.replicas)


def findings(health: Health) -> list[Finding]:
    return [
        *_of_quorum(health.quorum),
        *_of_brokers(health),
        *_of_partitions(health),
    ]


def _of_quorum(quorum: Quorum | None) -> Iterator[Finding]:
    if quorum is None or quorum.leader_id is None:
        yield Finding(
            "there is no active controller",
            "most voters are down or cannot reach each other: nothing can be created or changed",
            "start the controllers that are down: odradek start --config FILE",
        )
        return
    for voter in quorum.voters:
        where = f"node {voter.node_id}" + ("" if voter.address is None else f" at {voter.address}")
        if voter.fetched_ms_ago is None or voter.fetched_ms_ago > _LATE_MS:
            ago = "" if voter.fetched_ms_ago is None else f" for {voter.fetched_ms_ago / 1000:.0f} s"
            yield Finding(
                f"voter {voter.node_id} has not fetched the metadata{ago}",
                f"{where} is down or cannot reach controller {quorum.leader_id}",
                f"look at the log of node {voter.node_id}; odradek cluster quorum",
            )
        elif voter.lag_ms is None or voter.lag_ms > _LATE_MS:
            ago = "" if voter.lag_ms is None else f" and {voter.lag_ms / 1000:.0f} s"
            yield Finding(
                f"voter {voter.node_id} is {voter.lag} offsets{ago} behind",
                f"{where} is slow to write the metadata log, or has just started",
                "odradek cluster quorum --watch 1s",
            )


def _of_brokers(health: Health) -> Iterator[Finding]:
    held = {id_ for topic in health.topics for partition in topic.partitions for id_ in partition.replicas}
    for broker_id in sorted({*health.brokers, *held}):
        if broker_id not in health.brokers:
            yield Finding(
                f"broker {broker_id} is not registered, and has replicas",
                "it was unregistered, or it has never started",
                f"start node {broker_id}: odradek start --config FILE",
            )
        elif health.brokers[broker_id]:
            yield Finding(
                f"broker {broker_id} is fenced",
                "it is down, still starting, or its heartbeats do not reach the controller",
                f"look at the log of node {broker_id}; odradek cluster info",
            )


def _of_partitions(health: Health) -> Iterator[Finding]:
    """Each partition once, by the worst that is true of it."""
    offline: list[_Named] = []
    under_min_isr: list[_Named] = []
    under_replicated: list[_Named] = []
    for topic in health.topics:
        for p in topic.partitions:
            least = min(health.min_isr.get(topic.name, 0), len(p.replicas))
            if p.leader is None:
                offline.append((topic.name, p))
            elif len(p.isr) < least:
                under_min_isr.append((topic.name, p))
            elif _is_under_replicated(p):
                under_replicated.append((topic.name, p))
    if offline:
        name, first = offline[0]
        yield Finding(
            f"{_partitions(offline, 'has', 'have')} no leader: {_names(offline)}",
            _why_offline(first),
            f"odradek topic describe {name}",
        )
    if under_min_isr:
        name, first = under_min_isr[0]
        yield Finding(
            f"{_partitions(under_min_isr)} under min ISR, and {_refuses(under_min_isr)} acks=all: "
            f"{_names(under_min_isr)}",
            f"{_in_sync(first)}, min.insync.replicas is {health.min_isr[name]}; {_missing(health, first)}",
            f"odradek why under-replicated {name}",
        )
    if under_replicated:
        name, first = under_replicated[0]
        yield Finding(
            f"{_partitions(under_replicated)} under-replicated: {_names(under_replicated)}",
            f"{_in_sync(first)}; {_missing(health, first)}",
            f"odradek why under-replicated {name}",
        )


def _why_offline(partition: PartitionInfo) -> str:
    """The first that returns of those that have every record leads again."""
    eligible = sorted({*partition.isr, *(partition.elr or ())})
    if eligible:
        return f"no replica that may lead is alive; the first one waits for broker {_or(eligible)}"
    known = partition.last_known_elr or partition.replicas
    return f"no replica is known to have every record; the replicas of the first are on {_and(known)}"


def _missing(health: Health, partition: PartitionInfo) -> str:
    """Where the replicas are that are not in sync, and what is known of their brokers."""
    causes = []
    for broker_id in partition.replicas:
        if broker_id in partition.isr:
            continue
        if broker_id not in health.brokers:
            causes.append(f"broker {broker_id} is not registered")
        elif health.brokers[broker_id]:
            causes.append(f"broker {broker_id} is fenced")
        elif broker_id in partition.offline:
            causes.append(f"a log directory of broker {broker_id} failed")
        else:
            causes.append(f"the replica on broker {broker_id} is behind")
    return ", ".join(causes)


def _in_sync(partition: PartitionInfo) -> str:
    return f"of the first, {len(partition.isr)} of {len(partition.replicas)} replicas are in sync"


def _refuses(found: "Sequence[_Named]") -> str:
    return "refuses" if len(found) == 1 else "refuse"


def _partitions(found: "Sequence[_Named]", one: str = "is", many: str = "are") -> str:
    return f"{_counted(len(found), 'partition')} {one if len(found) == 1 else many}"


def _names(found: "Sequence[_Named]") -> str:
    named = ", ".join(f"{name}-{p.partition}" for name, p in found[:_NAMED])
    return named + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")


def _and(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))


def _or(ids: Sequence[int]) -> str:
    return " or ".join(map(str, ids))


def verdict(health: Health) -> str:
    """One sentence for a cluster in which nothing is wrong."""
    assert health.quorum is not None
    partitions = sum(len(topic.partitions) for topic in health.topics)
    parts = [
        _counted(len(health.brokers), "broker"),
        f"controller {health.quorum.leader_id} leads {_counted(len(health.quorum.voters), 'voter')}",
        f"{_counted(partitions, 'partition')} with a leader",
    ]
    return "healthy: " + ", ".join(parts)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
