"""AlterPartition: only the current leader, with the current epochs, may change the ISR."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from odradek.controller.result import MAX_RECORDS_PER_BATCH
from odradek.core.errors import ErrorCode
from odradek.metadata.records import FeatureLevelRecord, UnregisterBrokerRecord
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_decoder, request_encoder, request_types
from tests.unit.controller.harness import Harness
from tests.unit.controller.test_large_results import with_partitions


def three_replicas() -> Harness:
    """Broker 4 has none of them."""
    h = Harness()
    for broker_id in (1, 2, 3, 4):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [1, 2, 3]})
    return h


def epoch(h: Harness, broker_id: int) -> int:
    broker = h.image.brokers.get(broker_id)
    return 0 if broker is None else broker.epoch


def alter(h: Harness, isr: list[int], *, leader: int = 1, **changes: Any) -> Any:
    types = request_types(ApiKey.ALTER_PARTITION)
    topic = h.image.topics_by_name["t"]
    partition = topic.partitions[0]
    epochs = changes.pop("epochs", {})
    members = [types.BrokerState(broker_id=n, broker_epoch=epochs.get(n, epoch(h, n))) for n in isr]
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
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 2}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"epochs": {2: 7777}}, ErrorCode.INELIGIBLE_REPLICA),
        ([1], {"topic_id": UUID(int=5)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ([1], {"topic_id": UUID(int=0)}, ErrorCode.UNKNOWN_TOPIC_ID),
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
    for broker_id in (1, 2, 4):
        h.heartbeat(broker_id)
    h.now_ms += 1
    assert h.expire() == 3
    assert alter(h, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_member_that_stops_or_is_forgotten_is_not_let_in() -> None:
    h = three_replicas()
    h.create("u", -1, -1, assignments={0: [2, 1]})
    h.heartbeat(2, want_shut_down=True)
    assert not h.image.brokers[2].fenced
    assert alter(h, [1, 2]).error_code == ErrorCode.INELIGIBLE_REPLICA
    h.apply([UnregisterBrokerRecord(broker_id=3, broker_epoch=h.image.brokers[3].epoch)])
    assert alter(h, [1, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_only_the_current_incarnation_of_a_leader_is_heard() -> None:
    h = three_replicas()
    types = request_types(ApiKey.ALTER_PARTITION)
    request = types.AlterPartitionRequest(broker_id=1, broker_epoch=h.image.brokers[1].epoch - 1, topics=[])
    assert h.call(ApiKey.ALTER_PARTITION, request).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_version_2_names_members_without_their_epochs() -> None:
    h = three_replicas()
    types = request_types(ApiKey.ALTER_PARTITION)
    topic = h.image.topics_by_name["t"]
    row = types.PartitionData(
        partition_index=0,
        new_isr_with_epochs=[types.BrokerState(broker_id=n, broker_epoch=77) for n in (1, 3)],
    )
    request = types.AlterPartitionRequest(
        broker_id=1,
        broker_epoch=h.image.brokers[1].epoch,
        topics=[types.TopicData(topic_id=topic.id, partitions=[row])],
    )
    encoded = bytes(request_encoder(ApiKey.ALTER_PARTITION, 2)(request))
    again, _ = request_decoder(ApiKey.ALTER_PARTITION, 2)(encoded, 0)
    (answer,) = h.call(ApiKey.ALTER_PARTITION, again).topics[0].partitions
    assert (answer.error_code, tuple(answer.isr)) == (0, (1, 3))


def many(h: Harness, indexes: Sequence[int]) -> Any:
    """A request of broker 1 that takes broker 2 out of partitions of t."""
    types = request_types(ApiKey.ALTER_PARTITION)
    epoch = h.image.brokers[1].epoch
    rows = [
        types.PartitionData(
            partition_index=index, new_isr_with_epochs=[types.BrokerState(broker_id=1, broker_epoch=epoch)]
        )
        for index in indexes
    ]
    data = types.TopicData(topic_id=h.image.topics_by_name["t"].id, partitions=rows)
    return types.AlterPartitionRequest(broker_id=1, broker_epoch=epoch, topics=[data])


def test_a_partition_that_is_named_twice_is_altered_once() -> None:
    h = three_replicas()
    answers = h.call(ApiKey.ALTER_PARTITION, many(h, [0, 0])).topics[0].partitions
    assert [a.error_code for a in answers] == [0, ErrorCode.INVALID_UPDATE_VERSION]
    assert h.kinds() == ["PartitionChangeRecord"]


def test_a_leader_of_thousands_of_partitions_is_answered_in_slices_and_in_batches() -> None:
    count = MAX_RECORDS_PER_BATCH + 1
    h = with_partitions(count)
    deciding = h.controller.handle(ApiKey.ALTER_PARTITION, many(h, range(count)), h.now_ms, h.next_offset)
    costs = []
    while True:
        try:
            costs.append(next(deciding))
        except StopIteration as done:
            result = done.value
            break
    assert len(costs) >= count, "it pauses after each"
    assert max(costs) < 100
    assert [len(batch) for batch in result.batches()] == [MAX_RECORDS_PER_BATCH, 1]
    assert {a.error_code for a in result.response.topics[0].partitions} == {0}
