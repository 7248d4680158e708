"""CreatePartitions adds what it may and refuses the rest in Apache's words."""

from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, with_one_broker


def grow(
    h: Harness, *topics: tuple[str, int, list[list[int]] | None], validate_only: bool = False
) -> list[tuple[str, int, str | None]]:
    types = request_types(ApiKey.CREATE_PARTITIONS)
    asked = [
        types.CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None
            if rows is None
            else [types.CreatePartitionsAssignment(broker_ids=row) for row in rows],
        )
        for name, count, rows in topics
    ]
    request = types.CreatePartitionsRequest(topics=asked, validate_only=validate_only)
    answer = h.call(ApiKey.CREATE_PARTITIONS, request)
    return [(r.name, r.error_code, r.error_message) for r in answer.results]


def test_new_partitions_follow_the_old_ones() -> None:
    h = with_one_broker()
    h.create("t", 2)
    assert grow(h, ("t", 4, None)) == [("t", 0, None)]
    assert h.kinds() == ["PartitionRecord", "PartitionRecord"]
    assert sorted(h.image.topics_by_name["t"].partitions) == [0, 1, 2, 3]
    assert h.delta is not None
    assert [(t.name, i) for t, i, _ in h.delta.changed_partitions] == [("t", 2), ("t", 3)]


REFUSED: list[tuple[int, Any, ErrorCode, str]] = [
    (2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
    (
        1,
        None,
        ErrorCode.INVALID_PARTITIONS,
        "The topic t currently has 2 partition(s); 1 would not be an increase.",
    ),
    (
        3,
        [[1], [1]],
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
    ),
    (
        3,
        [[9]],
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    (20_000, None, ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
]


@pytest.mark.parametrize(("count", "rows", "code", "message"), REFUSED)
def test_a_change_that_cannot_be_is_refused(count: int, rows: Any, code: ErrorCode, message: str) -> None:
    h = with_one_broker()
    h.create("t", 2)
    assert grow(h, ("t", count, rows)) == [("t", code, message)]
    assert h.records == []


def test_an_unknown_topic_is_an_error_without_words() -> None:
    h = with_one_broker()
    assert grow(h, ("no", 3, None)) == [("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)]


def test_a_topic_named_twice_does_not_grow_and_the_others_do() -> None:
    h = with_one_broker()
    h.create("a")
    h.create("b")
    assert grow(h, ("a", 3, None), ("a", 4, None), ("b", 2, None)) == [
        ("b", 0, None),
        ("a", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
    ]
    assert {t: len(i.partitions) for t, i in h.image.topics_by_name.items()} == {"a": 1, "b": 2}


def test_validate_only_adds_nothing() -> None:
    h = with_one_broker()
    h.create("t")
    assert grow(h, ("t", 5, None), validate_only=True) == [("t", 0, None)]
    assert h.records == []
