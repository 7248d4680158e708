"""ElectLeaders gives the lead to the preferred replica, or uncleanly to any, and says why not."""

from typing import Any

from odradek.core.errors import ErrorCode
from odradek.metadata.records import PartitionChangeRecord
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, with_one_broker

PREFERRED, UNCLEAN = 0, 1


def elect(h: Harness, asked: dict[str, list[int]] | None, kind: int = PREFERRED) -> Any:
    types = request_types(ApiKey.ELECT_LEADERS)
    rows = None if asked is None else [types.TopicPartitions(topic=t, partitions=p) for t, p in asked.items()]
    return h.call(ApiKey.ELECT_LEADERS, types.ElectLeadersRequest(election_type=kind, topic_partitions=rows))


def codes(answer: Any) -> dict[str, dict[int, int]]:
    return {
        row.topic: {p.partition_id: p.error_code for p in row.partition_result}
        for row in answer.replica_election_results
    }


def two_brokers() -> Harness:
    h = with_one_broker()
    h.start_broker(2)
    return h


def leader(h: Harness) -> int:
    return h.image.topics_by_name["t"].partitions[0].leader


def test_the_preferred_replica_takes_the_lead_back_and_the_epoch_moves() -> None:
    h = two_brokers()
    h.create("t", assignments={0: [2, 1]}, partitions=-1, replication_factor=-1)
    h.heartbeat(2, want_fence=True)
    assert leader(h) == 1
    assert codes(elect(h, {"t": [0]})) == {"t": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}
    h.heartbeat(2)
    rejoin(h)
    before = h.image.topics_by_name["t"].partitions[0].leader_epoch
    assert codes(elect(h, None)) == {"t": {0: 0}}
    assert h.kinds() == ["PartitionChangeRecord"]
    assert leader(h) == 2
    assert h.image.topics_by_name["t"].partitions[0].leader_epoch == before + 1
    assert codes(elect(h, {"t": [0]})) == {"t": {0: ErrorCode.ELECTION_NOT_NEEDED}}
    assert h.records == []


def rejoin(h: Harness) -> None:
    """The second replica has caught up: its leader takes it into the ISR."""
    types = request_types(ApiKey.ALTER_PARTITION)
    topic = h.image.topics_by_name["t"]
    partition = topic.partitions[0]
    row = types.PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=[
            types.BrokerState(broker_id=n, broker_epoch=h.image.brokers[n].epoch) for n in (1, 2)
        ],
        partition_epoch=partition.partition_epoch,
    )
    request = types.AlterPartitionRequest(
        broker_id=1,
        broker_epoch=h.image.brokers[1].epoch,
        topics=[types.TopicData(topic_id=topic.id, partitions=[row])],
    )
    h.call(ApiKey.ALTER_PARTITION, request)
    assert h.image.topics_by_name["t"].partitions[0].isr == (1, 2)


def test_an_unclean_election_takes_a_replica_that_is_not_in_sync() -> None:
    h = two_brokers()
    h.create("t", assignments={0: [2, 1]}, partitions=-1, replication_factor=-1)
    h.heartbeat(1, want_fence=True)
    h.heartbeat(2, want_fence=True)
    assert codes(elect(h, {"t": [0]}, UNCLEAN)) == {"t": {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}}
    h.heartbeat(1)
    assert leader(h) == -1, "broker 1 was not in sync when broker 2 went"
    assert codes(elect(h, {"t": [0, 0]}, UNCLEAN)) == {"t": {0: 0}}
    assert h.kinds() == ["PartitionChangeRecord"], "a partition that is named twice has one election"
    assert leader(h) == 1
    assert codes(elect(h, None, UNCLEAN)) == {"t": {}}


def test_a_preferred_election_finds_a_leader_for_a_partition_without_one() -> None:
    """The eligible leader is there again, and nobody has elected it yet."""
    h = two_brokers()
    h.create("t", assignments={0: [2, 1]}, partitions=-1, replication_factor=-1)
    topic = h.image.topics_by_name["t"]
    h.apply(
        [
            PartitionChangeRecord(
                partition_id=0, topic_id=topic.id, isr=(), leader=-1, eligible_leader_replicas=(2,)
            )
        ]
    )
    assert codes(elect(h, {"t": [0]})) == {"t": {0: 0}}
    partition = h.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), ())


def test_a_preferred_election_elects_another_replica_before_none() -> None:
    h = two_brokers()
    h.create("t", assignments={0: [2, 1]}, partitions=-1, replication_factor=-1)
    topic = h.image.topics_by_name["t"]
    h.apply([PartitionChangeRecord(partition_id=0, topic_id=topic.id, isr=(1,), leader=-1)])
    assert codes(elect(h, {"t": [0]})) == {"t": {0: 0}}
    assert leader(h) == 1
    assert codes(elect(h, {"t": [0]})) == {"t": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}


def test_a_preferred_election_is_never_unclean() -> None:
    h = two_brokers()
    configs = {"unclean.leader.election.enable": "true"}
    h.create("t", assignments={0: [2, 1]}, partitions=-1, replication_factor=-1, configs=configs)
    topic = h.image.topics_by_name["t"]
    h.apply([PartitionChangeRecord(partition_id=0, topic_id=topic.id, isr=(), leader=-1)])
    assert codes(elect(h, {"t": [0]})) == {"t": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}
    assert leader(h) == -1


def test_what_is_not_there_and_what_is_not_known_is_refused() -> None:
    h = with_one_broker()
    h.create("t")
    answer = elect(h, {"t": [1], "none": [0]})
    assert [p.error_message for row in answer.replica_election_results for p in row.partition_result] == [
        "No such partition as t-1",
        "No such topic as none",
    ]
    assert elect(h, {"t": [0]}, 7).error_code == ErrorCode.INVALID_REQUEST
    assert codes(elect(h, {"t": [0]}, 7)) == {"t": {0: ErrorCode.INVALID_REQUEST}}
