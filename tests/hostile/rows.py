"""Requests that once kept everybody waiting, each by its name: small in the tests, whole in soak.py."""

from typing import Any, NamedTuple

from odradek.wire.api_keys import ApiKey
from tests.hostile.cases import Case
from tests.hostile.shapes import Shape

MB = 1 << 20
CREATE = {"allow_auto_topic_creation": True}
INVALID = {**CREATE, "unknown names": "not a name!"}
SHORTEST = {"unknown names": ""}


class Row(NamedTuple):
    """`whole_bytes` is how long the request was."""

    name: str
    case: Case
    whole_bytes: int

    def __str__(self) -> str:
        return self.name


def _row(
    name: str, api_key: ApiKey, version: int, kind: str, path: str, whole_bytes: float, **given: Any
) -> Row:
    shape = Shape(kind, tuple(path.split()))
    return Row(name, Case(api_key, version, shape, given), int(whole_bytes))


ROWS = [
    _row("fetch-with-tag-0-repeated", ApiKey.FETCH, 18, "known-tags-long", "", 5.2 * MB),
    _row(
        "produce-of-null-records-to-one-partition",
        ApiKey.PRODUCE,
        13,
        "null",
        "topic_data partition_data",
        8 * MB,
    ),
    _row("produce-of-empty-records", ApiKey.PRODUCE, 13, "empty", "topic_data partition_data", 2 * MB),
    _row(
        "produce-of-topics-without-partitions",
        ApiKey.PRODUCE,
        12,
        "empty",
        "topic_data",
        8 * MB,
        **{"repeated name": "t"},
    ),
    _row(
        "find-coordinator-of-one-key-repeated",
        ApiKey.FIND_COORDINATOR,
        6,
        "repeated",
        "coordinator_keys",
        2 * MB,
        **{"repeated coordinator_keys": "k"},
    ),
    _row(
        "write-txn-markers-of-one-partition-repeated",
        ApiKey.WRITE_TXN_MARKERS,
        1,
        "repeated",
        "markers topics partition_indexes",
        0.5 * MB,
    ),
    _row("list-offsets", ApiKey.LIST_OFFSETS, 11, "many", "topics partitions", 8 * MB),
    _row("metadata-of-unknown-names", ApiKey.METADATA, 9, "many", "topics", 1.5 * MB, **SHORTEST),
    _row("offset-for-leader-epoch", ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, "many", "topics partitions", 8 * MB),
    _row("offset-commit", ApiKey.OFFSET_COMMIT, 9, "many", "topics partitions", 2 * MB),
    _row("delete-records", ApiKey.DELETE_RECORDS, 2, "many", "topics partitions", 2 * MB),
    _row("metadata-that-creates-topics", ApiKey.METADATA, 13, "many", "topics", 0.29 * MB, **CREATE),
    _row("metadata-of-invalid-names", ApiKey.METADATA, 9, "many", "topics", 2.3 * MB, **INVALID),
]
"""Those whose entries are in the request; at their whole lengths the last two name 9,000 and 100,000 topics.

Expressions and parked fetches have tests of their own.
"""
