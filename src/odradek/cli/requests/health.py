"""What is wrong with a cluster, the worst first, each with its cause and what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from odradek.cli.errors import kafka_failure
from odradek.cli.requests.cluster_access import ClusterAccess, TopicInfo
from odradek.cli.requests.quorum import Quorum, describe_quorum
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_LATE_MS: Final = 5_000
"""A voter fetches every half second; one that did not for so long is in trouble."""
_NAMED: Final = 3


class Finding(NamedTuple):
    problem: str
    cause: str
    next: str


class Health(NamedTuple):
    quorum: Quorum | None
    brokers: Mapping[int, bool]
    """Whether each one is fenced."""
    topics: Sequence[TopicInfo]


def examine(properties: Mapping[str, str], cluster: ClusterAccess) -> Health:
    return Health(describe_quorum(properties), _brokers(cluster), cluster.topics())


def _brokers(cluster: ClusterAccess) -> dict[int, bool]:
    types = request_types(ApiKey.DESCRIBE_CLUSTER)
    request = types.DescribeClusterRequest(include_fenced_brokers=True)
    response = cluster.send(ApiKey.DESCRIBE_CLUSTER, request)
    if response.error_code:
        raise kafka_failure("cluster", "", KafkaError(ErrorCode(response.error_code), response.error_message))
    return {broker.broker_id: broker.is_fenced for broker in response.brokers}


def findings(health: Health) -> list[Finding]:
    return [
        *(_of_quorum(health.quorum)),
        *(_of_brokers(health.brokers)),
        *(_of_partitions(health.topics)),
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


def _of_brokers(brokers: Mapping[int, bool]) -> Iterator[Finding]:
    for broker_id in sorted(brokers):
        if brokers[broker_id]:
            yield Finding(
                f"broker {broker_id} is fenced",
                "it is down, still starting, or its heartbeats do not reach the controller",
                f"look at the log of node {broker_id}; odradek cluster info",
            )


def _of_partitions(topics: Sequence[TopicInfo]) -> Iterator[Finding]:
    found = [(topic.name, p) for topic in topics for p in topic.partitions if p.leader is None]
    if not found:
        return
    named = ", ".join(f"{name}-{p.partition}" for name, p in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    replicas = ", ".join(str(replica) for replica in found[0][1].replicas)
    yield Finding(
        f"{len(found)} {'partition has' if len(found) == 1 else 'partitions have'} no leader: {named}{more}",
        f"no replica in sync is alive; the replicas of the first are on {replicas}",
        f"odradek topic describe {found[0][0]}",
    )


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
