"""A Produce of many partitions is written in parts, with the same answer as if it were written at once."""

from typing import Any

import pytest

from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.hostile.names import RECORDS
from tests.hostile.stage import Client
from tests.hostile.world import StagedWorld

ASKED = (
    ("wide", range(0)),
    ("known-0001", range(3)),
    ("wide", range(1_480, 1_520)),
    ("known-0002", range(1)),
)
ERRORS = {"known-0001": [0, 3, 3], "wide": [0] * 20 + [3] * 20, "known-0002": [0]}


def produce(world: StagedWorld, client: Client, version: int, acks: int = -1, **given: Any) -> Any:
    types = request_types(ApiKey.PRODUCE)
    topics = [
        types.TopicProduceData(
            name=name,
            topic_id=world.topic_ids[name],
            partition_data=[
                types.PartitionProduceData(index=index, records=given.get("records", RECORDS))
                for index in indexes
            ],
        )
        for name, indexes in ASKED
    ]
    fields = {"transactional_id": None, "acks": acks, "timeout": 30_000, "topic_data": topics}
    return world.call(client, ApiKey.PRODUCE, version, **fields)


def rows(world: StagedWorld, answer: Any, version: int) -> list[tuple[str, list[tuple[int, int]]]]:
    names = {topic_id: name for name, topic_id in world.topic_ids.items()}
    return [
        (
            names[topic.topic_id] if version >= 13 else topic.name,
            [(row.index, row.error_code) for row in topic.partition_responses],
        )
        for topic in answer.responses
    ]


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12, 13])
def test_every_partition_is_answered_in_the_order_of_the_request(world: StagedWorld, version: int) -> None:
    with world.stage.client() as client:
        answer = produce(world, client, version)
    assert rows(world, answer, version) == [
        (name, list(zip(indexes, ERRORS[name], strict=True)) if indexes else []) for name, indexes in ASKED
    ]


def test_what_brings_no_records_is_refused_for_each_partition(world: StagedWorld) -> None:
    with world.stage.client() as client:
        answer = produce(world, client, 13, records=b"")
    found = [row for topic in answer.responses for row in topic.partition_responses]
    assert len(found) == 44
    assert {row.error_code for row in found} == {87, 3}


def test_a_refusal_of_an_unacknowledged_produce_is_a_hang_up(world: StagedWorld) -> None:
    with world.stage.client() as client, pytest.raises(AssertionError, match="hung up"):
        produce(world, client, 13, acks=0)
