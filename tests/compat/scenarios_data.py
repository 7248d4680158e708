"""Conversations about records, offsets and what a broker knows: one per API, see world.py."""

import uuid
from collections.abc import Iterator
from typing import Any

from tests.compat.scenarios_transactions import (
    produce_in_transactions,
    producers_in_transactions,
    write_transactions,
)
from tests.compat.world import BASE_MS, STRANGER, World, scenario
from tests.support.batches import batch


@scenario(0)
def produce_(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(name: str, identifier: uuid.UUID, index: int, records: bytes | None) -> dict[str, Any]:
        data = [{"index": index, "records": records}]
        return {
            "transactional_id": None,
            "acks": -1,
            "timeout": 10_000,
            "topic_data": [{"name": name, "topic_id": identifier, "partition_data": data}],
        }

    good = batch([b"a", b"b"], timestamp=BASE_MS)
    yield values(world.topic, world.topic_id, 0, good)
    yield values(world.topic, world.topic_id, 9, good)
    yield values(world.other, STRANGER, 0, good)
    yield values(world.topic, world.topic_id, 1, batch(crc_xor=1))
    yield {**values(world.topic, world.topic_id, 1, good), "acks": 5}
    yield from produce_in_transactions(world, version)


@scenario(1)
def fetch(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(name: str, identifier: uuid.UUID, index: int, offset: int, **over: Any) -> dict[str, Any]:
        row = {
            "partition": index,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": 1 << 20,
            **over,
        }
        return {
            "replica_id": -1,
            "replica_state": {"replica_id": -1, "replica_epoch": -1},
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": name, "topic_id": identifier, "partitions": [row]}],
            "forgotten_topics_data": [],
            "rack_id": "",
        }

    yield values(world.topic, world.topic_id, 0, 1)
    yield values(world.topic, world.topic_id, 0, 3)
    yield values(world.topic, world.topic_id, 0, 99)
    yield values(world.topic, world.topic_id, 9, 0)
    yield values(world.other, STRANGER, 0, 0)
    yield values(world.topic, world.topic_id, 0, 0, current_leader_epoch=0)
    yield values(world.topic, world.topic_id, 0, 0, current_leader_epoch=4)
    yield {**values(world.topic, world.topic_id, 0, 2), "isolation_level": 1}
    with write_transactions(world):
        for offset in range(8):
            for isolation_level in (0, 1):
                yield {**values(world.topic, world.topic_id, 1, offset), "isolation_level": isolation_level}


@scenario(2)
def list_offsets(world: World, version: int) -> Iterator[dict[str, Any]]:
    for timestamp in (-1, -2, -3, -4, -5, -6, BASE_MS + 1, BASE_MS + 9):
        for partition in (0, 1):
            row = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
            yield {
                "replica_id": -1,
                "isolation_level": 0,
                "timeout": 1000,
                "topics": [{"name": world.topic, "partitions": [row]}],
            }
    row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    yield {"replica_id": -1, "isolation_level": 1, "topics": [{"name": world.other, "partitions": [row]}]}
    stale = {**row, "current_leader_epoch": 7}
    yield {"replica_id": -1, "isolation_level": 0, "topics": [{"name": world.topic, "partitions": [stale]}]}
    with write_transactions(world):
        for timestamp in (-1, -2, -3):
            for isolation_level in (0, 1):
                row = {"partition_index": 1, "current_leader_epoch": -1, "timestamp": timestamp}
                topics = [{"name": world.topic, "partitions": [row]}]
                yield {
                    "replica_id": -1,
                    "isolation_level": isolation_level,
                    "timeout": 1000,
                    "topics": topics,
                }


@scenario(3)
def metadata(world: World, version: int) -> Iterator[dict[str, Any]]:
    base = {
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    yield {**base, "topics": [{"name": world.topic, "topic_id": None}]}
    if version >= 4:
        yield {**base, "topics": [{"name": world.other, "topic_id": None}]}
        yield {**base, "topics": [{"name": "no/such", "topic_id": None}]}
    if version >= 1:
        yield {**base, "topics": []}
    if version >= 10:
        yield {**base, "topics": [{"name": None, "topic_id": world.topic_id}]}
        yield {**base, "topics": [{"name": None, "topic_id": STRANGER}]}
        yield {**base, "topics": [{"name": world.other, "topic_id": world.topic_id}]}
    yield {
        **base,
        "topics": [{"name": world.topic, "topic_id": None}],
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }


@scenario(18)
def api_versions(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"client_software_name": "tests", "client_software_version": "1.0"}
    if version >= 3:
        yield {"client_software_name": "", "client_software_version": "!"}


@scenario(21)
def delete_records(world: World, version: int) -> Iterator[dict[str, Any]]:
    for name, partition, offset in (
        (world.topic, 0, 2),
        (world.topic, 0, 1),
        (world.topic, 0, 99),
        (world.topic, 0, -1),
        (world.topic, 0, -7),
        (world.topic, 9, 0),
        (world.other, 0, 0),
    ):
        row = {"partition_index": partition, "offset": offset}
        yield {"timeout": 10_000, "topics": [{"name": name, "partitions": [row]}]}


@scenario(23)
def offset_for_leader_epoch(world: World, version: int) -> Iterator[dict[str, Any]]:
    for name, partition, current, epoch in (
        (world.topic, 0, -1, 0),
        (world.topic, 0, 0, 0),
        (world.topic, 0, -1, 5),
        (world.topic, 0, 9, 0),
        (world.topic, 1, -1, 0),
        (world.topic, 9, -1, 0),
        (world.other, 0, -1, 0),
    ):
        row = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
        yield {"replica_id": -1, "topics": [{"topic": name, "partitions": [row]}]}


@scenario(61)
def describe_producers(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"topics": [{"name": world.topic, "partition_indexes": [0, 9]}]}
    yield {"topics": [{"name": world.other, "partition_indexes": [0]}]}
    yield from producers_in_transactions(world)
