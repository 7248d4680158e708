"""Many records become batches of at most 10,000; what must be atomic is refused above that."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from odradek.controller.result import MAX_RECORDS_PER_BATCH, ControllerResult, split
from odradek.core.errors import ErrorCode
from odradek.metadata.records import (
    MetadataRecord,
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
)
from odradek.runtime.slices import at_once
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, log_dir

SESSION_MS = 9000
TOO_MANY = "Unable to perform excessively large batch operation."


def no_ops(count: int) -> list[MetadataRecord]:
    return [NoOpRecord() for _ in range(count)]


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(0, []), (1, [1]), (10_000, [10_000]), (10_001, [10_000, 1]), (25_000, [10_000, 10_000, 5000])],
)
def test_a_result_is_split_into_batches_of_10000(count: int, sizes: list[int]) -> None:
    records = no_ops(count)
    batches = list(ControllerResult(records, None).batches())
    assert [len(batch) for batch in batches] == sizes
    assert [record for batch in batches for record in batch] == records
    assert [len(batch) for batch in split(records)] == sizes


def test_an_atomic_result_is_one_batch() -> None:
    (batch,) = ControllerResult(no_ops(10_000), None, is_atomic=True).batches()
    assert len(batch) == 10_000
    with pytest.raises(AssertionError, match="10001 records cannot be one batch"):
        list(ControllerResult(no_ops(10_001), None, is_atomic=True).batches())


def with_partitions(count: int, leader: int = 1) -> Harness:
    """A topic on brokers 1 and 2."""
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    h.apply(list(_partitions(h.controller.new_uuid(), count, leader)))
    return h


def _partitions(topic_id: UUID, count: int, leader: int) -> Iterator[MetadataRecord]:
    yield TopicRecord(name="t", topic_id=topic_id)
    for index in range(count):
        yield PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=(1, 2),
            isr=(1, 2),
            leader=leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=(log_dir(1), log_dir(2)),
        )


def leaders(h: Harness) -> set[int]:
    return {partition.leader for _, _, partition in h.controller.partitions()}


def silence_broker_1(h: Harness) -> None:
    h.now_ms += SESSION_MS - 1
    h.heartbeat(2)
    h.heartbeat(3)
    h.now_ms += 1


def test_a_broker_with_10500_partitions_is_fenced_in_two_batches() -> None:
    h = with_partitions(10_500)
    silence_broker_1(h)
    broker, records = at_once(h.controller.expire_session(h.now_ms))
    assert broker is not None
    batches = list(split(records))
    assert [len(batch) for batch in batches] == [10_000, 501]
    for batch in batches:
        h.apply(list(batch))
    assert leaders(h) == {2}
    assert h.image.brokers[1].fenced


def test_a_new_controller_completes_a_fencing_of_which_only_the_first_batch_was_written() -> None:
    h = with_partitions(10_500)
    silence_broker_1(h)
    _, records = at_once(h.controller.expire_session(h.now_ms))
    h.apply(list(next(iter(split(records)))))
    assert leaders(h) == {1, 2}
    assert not h.image.brokers[1].fenced, "the partitions come first"
    h.fail_over()
    assert h.expire() is None, "every broker has a whole session to be heard from"
    silence_broker_1(h)
    assert h.expire() == 1
    assert leaders(h) == {2}


def create(h: Harness, topics: int, partitions: int, *, validate_only: bool = False) -> Any:
    types = request_types(ApiKey.CREATE_TOPICS)
    rows = [
        types.CreatableTopic(name=f"t{i}", num_partitions=partitions, replication_factor=1)
        for i in range(topics)
    ]
    request = types.CreateTopicsRequest(topics=rows, validate_only=validate_only)
    return h.call(ApiKey.CREATE_TOPICS, request)


@pytest.mark.parametrize("validate_only", [False, True])
def test_topics_whose_records_are_no_batch_are_refused_together(validate_only: bool) -> None:
    h = Harness()
    h.start_broker()
    answer = create(h, 5001, 1, validate_only=validate_only)
    assert {(t.error_code, t.error_message) for t in answer.topics} == {
        (ErrorCode.POLICY_VIOLATION, TOO_MANY)
    }
    assert len(answer.topics) == 5001
    assert h.image.topics_by_name == {}


def test_topics_whose_records_are_exactly_one_batch_are_created() -> None:
    h = Harness()
    h.start_broker()
    assert {t.error_code for t in create(h, 5000, 1).topics} == {ErrorCode.NONE}
    assert len(h.records) == MAX_RECORDS_PER_BATCH


def test_topics_beyond_10000_are_not_deleted_in_one_request() -> None:
    h = Harness()
    h.apply([TopicRecord(name=f"t{i}", topic_id=h.controller.new_uuid()) for i in range(10_001)])
    types = request_types(ApiKey.DELETE_TOPICS)
    states = [types.DeleteTopicState(name=name) for name in h.image.topics_by_name]
    answer = h.call(ApiKey.DELETE_TOPICS, types.DeleteTopicsRequest(topics=states))
    assert len(h.records) == 10_000
    assert [r.name for r in answer.responses if r.error_code == ErrorCode.UNKNOWN_SERVER_ERROR] == ["t10000"]
    assert list(h.image.topics_by_name) == ["t10000"]


@pytest.mark.parametrize("asked_for_all", [True, False])
def test_more_than_10000_elections_are_refused_together(asked_for_all: bool) -> None:
    h = with_partitions(10_001, leader=2)
    types = request_types(ApiKey.ELECT_LEADERS)
    row = types.TopicPartitions(topic="t", partitions=list(range(10_001)))
    request = types.ElectLeadersRequest(election_type=0, topic_partitions=None if asked_for_all else [row])
    answer = h.call(ApiKey.ELECT_LEADERS, request)
    assert answer.error_code == ErrorCode.POLICY_VIOLATION
    partitions = [p for result in answer.replica_election_results for p in result.partition_result]
    assert len(partitions) == (0 if asked_for_all else 10_001)
    assert {(p.error_code, p.error_message) for p in partitions} <= {(ErrorCode.POLICY_VIOLATION, TOO_MANY)}
    assert h.records == []
