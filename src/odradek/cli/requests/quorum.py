"""The quorum of the metadata log as DescribeQuorum tells it: who leads, and how far the others are behind."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from odradek.cli.errors import Failure
from odradek.cli.requests.cluster_access import ClusterAccess
from odradek.cli.terminal.output import Section, Table, columns
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import METADATA_TOPIC, ZERO_UUID, uuid_to_text
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

LONGEST_WAIT_MS: Final = 5_000
"""For an active controller; elections take two seconds at most."""
_NOBODY_ACTIVE: Final = frozenset(
    (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
    )
)


class Replica(NamedTuple):
    """One that votes or observes. Times are as long ago as the leader says; None where it does not know."""

    node_id: int
    role: str
    directory_id: str | None
    log_end_offset: int | None
    lag: int | None
    lag_ms: int | None
    fetched_ms_ago: int | None
    address: str | None

    @property
    def votes(self) -> bool:
        return self.role != "observer"


class Quorum(NamedTuple):
    leader_id: int | None
    leader_epoch: int
    high_watermark: int | None
    replicas: list[Replica]
    listener_name: str = "CONTROLLER"
    """Of the leader's controller listener, by which voters reach each other."""

    @property
    def voters(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.votes]


def describe_quorum(properties: Mapping[str, str]) -> Quorum | None:
    """None where no controller is active: brokers wait for one, so this asks with a timeout of its own."""
    timeout_ms = min(LONGEST_WAIT_MS, int(properties["request.timeout.ms"]))
    cluster = ClusterAccess({**properties, "request.timeout.ms": str(timeout_ms)})
    try:
        with cluster.failing("quorum"):
            return _ask(cluster)
    finally:
        cluster.close()


def current_quorum(properties: Mapping[str, str]) -> Quorum:
    """A failure where no controller is active."""
    found = describe_quorum(properties)
    if found is None:
        raise Failure("there is no active controller", "next: odradek cluster health")
    return found


def _ask(cluster: ClusterAccess) -> Quorum | None:
    types = request_types(ApiKey.DESCRIBE_QUORUM)
    asked = types.TopicData(topic_name=METADATA_TOPIC, partitions=[types.PartitionData(partition_index=0)])
    cluster.metadata([])  # a broker that does not even answer this is another problem
    try:
        response = cluster.client.send(ApiKey.DESCRIBE_QUORUM, types.DescribeQuorumRequest(topics=[asked]))
        _check(response)
        (partition,) = response.topics[0].partitions
        _check(partition)
    except TimeoutError:
        return None
    except KafkaError as e:
        if e.code in _NOBODY_ACTIVE:
            return None
        raise
    return read_quorum(partition, response.nodes)


def _check(answer: Any) -> None:
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code), answer.error_message)


def read_quorum(partition: Any, nodes: Sequence[Any]) -> Quorum:
    """Times are compared with the leader's own, which are those of its answer: clocks may differ."""
    leader_id = partition.leader_id
    leader = next((v for v in partition.current_voters if v.replica_id == leader_id), None)
    addresses = {
        node.node_id: f"{node.listeners[0].host}:{node.listeners[0].port}" for node in nodes if node.listeners
    }
    replicas = [
        _replica(state, leader, "leader" if state is leader else "voter", addresses)
        for state in partition.current_voters
    ]
    replicas += [_replica(state, leader, "observer", addresses) for state in partition.observers]
    names = [listener.name for node in nodes if node.node_id == leader_id for listener in node.listeners]
    return Quorum(
        leader_id if leader_id >= 0 else None,
        partition.leader_epoch,
        partition.high_watermark if partition.high_watermark >= 0 else None,
        sorted(replicas, key=lambda replica: (not replica.votes, replica.node_id)),
        *names[:1],
    )


def _replica(state: Any, leader: Any | None, role: str, addresses: Mapping[int, str]) -> Replica:
    known = state.log_end_offset >= 0
    return Replica(
        state.replica_id,
        role,
        None if state.replica_directory_id in (None, ZERO_UUID) else uuid_to_text(state.replica_directory_id),
        state.log_end_offset if known else None,
        max(0, leader.log_end_offset - state.log_end_offset) if known and leader is not None else None,
        _ms_ago(leader, state.last_caught_up_timestamp),
        _ms_ago(leader, state.last_fetch_timestamp),
        addresses.get(state.replica_id) if role != "observer" else None,
    )


def _ms_ago(leader: Any | None, timestamp: int) -> int | None:
    if leader is None or timestamp < 0:
        return None
    return max(0, int(leader.last_fetch_timestamp) - timestamp)


def quorum_sections(quorum: Quorum) -> list[Section]:
    facts = {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
    }
    rows = [
        [r.node_id, r.role, r.address, r.directory_id, r.log_end_offset, r.lag, r.lag_ms, r.fetched_ms_ago]
        for r in quorum.replicas
    ]
    header = columns("NODE# ROLE ADDRESS DIRECTORY-ID+ LOG-END-OFFSET# LAG# LAG-MS# FETCHED-MS-AGO#")
    return [Section("quorum", facts), Section("replicas", Table(header, rows))]
