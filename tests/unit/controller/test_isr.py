"""AlterPartition: only the current leader, with the current epochs, may change the ISR."""

from typing import Any
from uuid import UUID

import pytest

from odradek.core.errors import ErrorCode
from odradek.metadata.records import FeatureLevelRecord
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness


def three_replicas() -> Harness:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [1, 2, 3]})
    return h


def alter(h: Harness, isr: list[int], *, leader: int = 1, **changes: Any) -> Any:
    types = request_types(ApiKey.ALTER_PARTITION)
    topic = h.image.topics_by_name["t"]
    partition = topic.partitions[0]
    epochs = changes.pop("epochs", {})
    members = [
        types.BrokerState(broker_id=n, broker_epoch=epochs.get(n, h.image.brokers[n].epoch))
        for n in isr
        if n in h.image.brokers
    ]
    fields = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "new_isr_with_epochs": members,
        **changes,
    }
    topic_id = fields.pop("topic_id", topic.id)
    data = types.TopicData(topic_id=topic_id, partitions=[types.PartitionData(**fields)])
    request = types.AlterPartitionRequest(
        broker_id=leader, broker_epoch=h.image.brokers[leader].epoch, topics=[data]
    )
    answer = h.call(ApiKey.ALTER_PARTITION, request)
    assert answer.error_code == 0
    return answer.topics[0].partitions[0]


def test_the_leader_shrinks_and_expands_its_isr() -> None:
    h = three_replicas()
    answer = alter(h, [1, 2])
    assert (answer.error_code, list(answer.isr), answer.partition_epoch) == (0, [1, 2], 1)
    assert h.image.topics_by_name["t"].partitions[0].isr == (1, 2)
    answer = alter(h, [1, 2, 3])
    assert (list(answer.isr), answer.partition_epoch, answer.leader_epoch) == ([1, 2, 3], 2, 0)


def test_the_same_isr_again_writes_nothing() -> None:
    h = three_replicas()
    assert alter(h, [1, 2, 3]).error_code == 0
    assert h.records == []


def test_who_falls_below_min_isr_stays_an_eligible_leader() -> None:
    h = Harness()
    for broker_id in (1, 2):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [1, 2]}, configs={"min.insync.replicas": "2"})
    alter(h, [1])
    assert h.image.topics_by_name["t"].partitions[0].elr == (2,)
    alter(h, [1, 2])
    assert h.image.topics_by_name["t"].partitions[0].elr == ()


@pytest.mark.parametrize(
    ("isr", "changes", "code"),
    [
        ([1], {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ([1], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ([2], {"leader": 2}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"epochs": {2: 7777}}, ErrorCode.INELIGIBLE_REPLICA),
        ([1], {"topic_id": UUID(int=5)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ([1], {"partition_index": 4}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_proposal_that_cannot_be_taken_is_refused(isr: list[int], changes: Any, code: ErrorCode) -> None:
    h = three_replicas()
    assert alter(h, isr, **changes).error_code == code
    assert h.records == []


def test_a_leader_whose_directory_failed_does_not_lead_on() -> None:
    """Its proposal comes after it has told of the directory: the lead goes to who is left."""
    h = three_replicas()
    h.register(1, log_dirs=[UUID(int=77_000)])
    answer = alter(h, [1, 2])
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert h.image.topics_by_name["t"].partitions[0].leader == 2


def test_at_an_old_metadata_version_a_shrunk_isr_is_a_new_leader_epoch() -> None:
    h = three_replicas()
    h.apply([FeatureLevelRecord(name="metadata.version", feature_level=11)])
    answer = alter(h, [1, 2])
    assert (answer.leader_id, answer.leader_epoch, answer.partition_epoch) == (1, 1, 1)
    answer = alter(h, [1, 2, 3])
    assert (answer.leader_epoch, answer.partition_epoch) == (1, 2), "an ISR that grows needs none"
    h.apply([FeatureLevelRecord(name="metadata.version", feature_level=12)])
    assert alter(h, [1, 2]).leader_epoch == 1


def test_a_member_of_any_epoch_is_let_through_but_a_fenced_one_is_not() -> None:
    h = three_replicas()
    alter(h, [1])
    assert alter(h, [1, 2], epochs={2: -1}).error_code == 0
    h.now_ms += 8999
    h.heartbeat(1)
    h.heartbeat(2)
    h.now_ms += 1
    assert h.expire() == 3
    assert alter(h, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
