"""What counts as a problem of a cluster, from answers as the cluster gives them."""

from uuid import UUID

import pytest

from odradek.cli.requests.cluster_access import PartitionInfo, TopicInfo
from odradek.cli.requests.health import Health, findings, verdict
from odradek.cli.requests.quorum import Quorum, read_quorum
from odradek.wire import responses

TYPES = responses.describe_quorum
NOW_MS = 1_000_000


def state(
    node_id: int, end: int = 40, fetched_ms: int = NOW_MS - 100, caught_up_ms: int = NOW_MS - 100
) -> object:
    return TYPES.ReplicaState(
        replica_id=node_id,
        replica_directory_id=UUID(int=node_id + 100),
        log_end_offset=end,
        last_fetch_timestamp=fetched_ms,
        last_caught_up_timestamp=caught_up_ms,
    )


LEADER = state(1, 40, NOW_MS, NOW_MS)


def quorum(*others: object, observers: tuple[object, ...] = ()) -> Quorum:
    partition = TYPES.PartitionData(
        partition_index=0,
        leader_id=1,
        leader_epoch=3,
        high_watermark=39,
        current_voters=[LEADER, *others],
        observers=list(observers),
    )
    nodes = [TYPES.Node(node_id=2, listeners=[TYPES.Listener(name="C", host="h", port=9)])]
    return read_quorum(partition, nodes)


BROKERS = {1: False, 2: False, 3: False}


def topic(*leaders: int | None) -> TopicInfo:
    partitions = [PartitionInfo(n, leader, 0, [2, 3], [2, 3], []) for n, leader in enumerate(leaders)]
    return TopicInfo("orders", None, False, partitions)


def problems(health: Health) -> list[str]:
    return [finding.problem for finding in findings(health)]


def test_lags_are_those_to_the_leader_by_its_own_clock() -> None:
    behind = state(2, 30, NOW_MS - 200, NOW_MS - 7_000)
    found = quorum(behind, state(3, -1, -1, -1), observers=(state(9),))
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 3, 39)
    by_id = {replica.node_id: replica for replica in found.replicas}
    assert [(r.role, r.lag, r.lag_ms, r.fetched_ms_ago) for r in by_id.values()] == [
        ("leader", 0, 0, 0),
        ("voter", 10, 7_000, 200),
        ("voter", None, None, None),
        ("observer", 0, 100, 100),
    ]
    assert by_id[2].address == "h:9"


def test_a_cluster_without_problems_is_healthy() -> None:
    health = Health(quorum(state(2), state(3)), BROKERS, [topic(1, 2)])
    assert findings(health) == []
    assert verdict(health) == "healthy: 3 brokers, controller 1 leads 3 voters, 2 partitions with a leader"


def test_without_a_controller_the_quorum_is_the_problem() -> None:
    assert problems(Health(None, {}, [])) == ["there is no active controller"]


@pytest.mark.parametrize(
    ("voter", "problem"),
    [
        (state(2, -1, -1, -1), "voter 2 has not fetched the metadata"),
        (state(2, 30, NOW_MS - 8_000, NOW_MS - 9_000), "voter 2 has not fetched the metadata for 8 s"),
        (state(2, 30, NOW_MS - 100, NOW_MS - 9_000), "voter 2 is 10 offsets and 9 s behind"),
    ],
)
def test_a_voter_that_does_not_follow_is_a_problem(voter: object, problem: str) -> None:
    (found,) = findings(Health(quorum(voter), {1: False}, []))
    assert found.problem == problem
    assert "node 2 at h:9" in found.cause


def test_an_observer_that_does_not_follow_is_none() -> None:
    assert problems(Health(quorum(observers=(state(9, 0, 0, 0),)), {1: False}, [])) == []


def test_fenced_brokers_and_partitions_without_a_leader_are_problems() -> None:
    health = Health(quorum(), {**BROKERS, 4: True}, [topic(1, None, None, None, None)])
    assert problems(health) == [
        "broker 4 is fenced",
        "4 partitions have no leader: orders-1, orders-2, orders-3 and 1 more",
    ]
    assert findings(health)[1].next == "odradek topic describe orders"
    (found,) = findings(Health(quorum(), BROKERS, [topic(None)]))
    assert found.problem == "1 partition has no leader: orders-0"
    assert found.cause.endswith("the first one waits for broker 2 or 3")


def replicated(*partitions: PartitionInfo) -> TopicInfo:
    return TopicInfo("orders", None, False, list(partitions))


def test_partitions_are_reported_once_by_the_worst_that_is_true_of_them() -> None:
    found = findings(
        Health(
            quorum(),
            {1: False, 2: True},
            [
                replicated(
                    PartitionInfo(0, 1, 5, [1, 2, 3], [1, 2], [3]),
                    PartitionInfo(1, 1, 5, [1, 2, 3], [1], [2, 3]),
                    PartitionInfo(2, None, 5, [2, 3], [], [2, 3], [], [3]),
                    PartitionInfo(3, 1, 5, [1], [1], []),
                )
            ],
            {"orders": 2},
        )
    )
    assert [f.problem for f in found] == [
        "broker 2 is fenced",
        "broker 3 is not registered, and has replicas",
        "1 partition has no leader: orders-2",
        "1 partition is under min ISR, and refuses acks=all: orders-1",
        "1 partition is under-replicated: orders-0",
    ]
    assert found[2].cause.endswith("the replicas of the first are on 3")
    assert found[3].cause == (
        "of the first, 1 of 3 replicas are in sync, min.insync.replicas is 2; "
        "broker 2 is fenced, broker 3 is not registered"
    )
    assert found[3].next == found[4].next == "odradek why under-replicated orders"


def test_an_eligible_leader_is_who_is_waited_for() -> None:
    partition = PartitionInfo(0, None, 5, [1, 2, 3], [], [1, 2, 3], [2], [3])
    (found,) = findings(Health(quorum(), BROKERS, [replicated(partition)], {"orders": 2}))
    assert found.cause == "no replica that may lead is alive; the first one waits for broker 2"


def test_a_disk_and_a_slow_replica_are_told_apart() -> None:
    partition = PartitionInfo(0, 1, 5, [1, 2, 3], [1], [3])
    (found,) = findings(Health(quorum(), BROKERS, [replicated(partition)], {"orders": 1}))
    assert found.cause.endswith("the replica on broker 2 is behind, a log directory of broker 3 failed")


def test_more_in_sync_replicas_than_there_can_be_are_not_demanded() -> None:
    """A broker compares with the number of replicas if min.insync.replicas is larger."""
    partition = PartitionInfo(0, 1, 5, [1, 2], [1, 2], [])
    assert problems(Health(quorum(), BROKERS, [replicated(partition)], {"orders": 3})) == []
