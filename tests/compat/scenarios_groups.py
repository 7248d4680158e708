"""Conversations about consumer groups and their offsets: one per API, see world.py."""

import uuid
from collections.abc import Iterator
from typing import Any

from tests.compat.world import STRANGER, World, scenario
from tests.support.group import ASSIGNMENT, Member


@scenario(8)
def offset_commit(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(topic: str, identifier: uuid.UUID, member: Member | None, **over: Any) -> dict[str, Any]:
        row = {
            "partition_index": 0,
            "committed_offset": 2,
            "committed_leader_epoch": 0,
            "committed_metadata": "note",
        }
        return {
            "group_id": world.group,
            "generation_id_or_member_epoch": member.generation if member else -1,
            "member_id": member.member_id if member else "",
            "group_instance_id": None,
            "retention_time": -1,
            "topics": [{"name": topic, "topic_id": identifier, "partitions": [row]}],
            **over,
        }

    with world.member() as member:
        member.stabilise()
        yield values(world.topic, world.topic_id, member)
        yield values(world.other, STRANGER, member)
        yield values(world.topic, world.topic_id, member, generation_id_or_member_epoch=77)
        yield values(world.topic, world.topic_id, member, member_id="nobody")
        yield values(world.topic, world.topic_id, None)
        member.leave()
        yield values(world.topic, world.topic_id, None)
        yield values(world.topic, world.topic_id, None, group_id="")


@scenario(9)
def offset_fetch(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(group: str, topics: list[tuple[str, uuid.UUID]] | None) -> dict[str, Any]:
        rows = None
        if topics is not None:
            rows = [{"name": n, "topic_id": i, "partition_indexes": [0, 1]} for n, i in topics]
        wanted = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": rows}
        return {"group_id": group, "topics": rows, "groups": [wanted], "require_stable": False}

    with world.member() as member:
        member.stabilise()
        member.commit(world.topic, 2, metadata="note")
        yield values(world.group, [(world.topic, world.topic_id)])
        yield values(world.group, [(world.other, STRANGER)])
        yield values(world.unique("group"), [(world.topic, world.topic_id)])
        yield values("", [(world.topic, world.topic_id)])
        if version >= 2:
            yield values(world.group, None)
            yield values(world.unique("group"), None)
        with world.producer() as producer:
            producer.init()
            assert producer.commit_offset(world.group, world.topic, 3, partition=1, **member.identity) == 0
            yield values(world.group, [(world.topic, world.topic_id)])
            if version >= 7:
                yield {**values(world.group, [(world.topic, world.topic_id)]), "require_stable": True}
                yield {**values(world.group, None), "require_stable": True}
            assert producer.end(commit=True) == 0
            producer.wait_until_ended()
            yield {**values(world.group, [(world.topic, world.topic_id)]), "require_stable": True}


@scenario(10)
def find_coordinator(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member():
        pass
    yield {"key": world.group, "key_type": 0, "coordinator_keys": [world.group]}
    yield {"key": "", "key_type": 0, "coordinator_keys": ["", world.group]}
    with world.producer():
        pass
    if version >= 1:
        yield {"key": world.txn, "key_type": 1, "coordinator_keys": [world.txn, world.txn + "-b"]}
        yield {"key": "", "key_type": 1, "coordinator_keys": [""]}
        yield {"key": world.txn, "key_type": 9, "coordinator_keys": [world.txn]}


@scenario(11)
def join_group(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        values = member.join_values(reason=None)
    first = yield values
    if version >= 4:
        yield {**values, "member_id": first.member_id}
    yield {**values, "group_id": world.unique("group"), "session_timeout": 1}
    yield {**values, "group_id": world.unique("group"), "member_id": "nobody"}
    yield {**values, "group_id": world.unique("group"), "protocols": []}
    yield {**values, "group_id": ""}
    if version >= 5:
        yield {**values, "group_id": world.unique("group"), "group_instance_id": "static"}


@scenario(12)
def heartbeat(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.stabilise()
        values = {
            "group_id": world.group,
            "generation_id": member.generation,
            "member_id": member.member_id,
            "group_instance_id": None,
        }
        yield values
        yield {**values, "generation_id": 77}
        yield {**values, "member_id": "nobody"}
        yield {**values, "group_id": world.unique("group")}
        yield {**values, "group_id": ""}


@scenario(13)
def leave_group(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(member_id: str, instance: str | None = None) -> dict[str, Any]:
        gone = {"member_id": member_id, "group_instance_id": instance, "reason": None}
        return {"group_id": world.group, "member_id": member_id, "members": [gone]}

    with world.member() as member:
        member.stabilise()
        yield values("nobody")
        if version >= 3:
            yield values("", "static")
        yield values(member.member_id)
        yield values(member.member_id)


@scenario(14)
def sync_group(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.join()
        values = {
            "group_id": world.group,
            "generation_id": member.generation,
            "member_id": member.member_id,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": member.member_id, "assignment": ASSIGNMENT}],
        }
        yield {**values, "generation_id": 77}
        yield {**values, "member_id": "nobody"}
        if version >= 5:
            yield {**values, "protocol_name": "sticky"}
        yield values
        yield {**values, "assignments": []}
        yield {**values, "group_id": ""}


@scenario(15)
def describe_groups(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.stabilise()
        yield {"groups": [world.group], "include_authorized_operations": False}
        yield {"groups": [world.unique("group")], "include_authorized_operations": True}
        member.leave()
        yield {"groups": [world.group], "include_authorized_operations": False}


@scenario(16)
def list_groups(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.stabilise()
        yield {}
        if version >= 4:
            yield {"states_filter": ["Stable"]}
            yield {"states_filter": ["Empty", "Dead"]}
        if version >= 5:
            yield {"types_filter": ["classic"]}
            yield {"types_filter": ["consumer"]}


@scenario(42)
def delete_groups(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"groups_names": [world.unique("group")]}
    with world.member() as member:
        member.stabilise()
        yield {"groups_names": [world.group]}
        member.leave()
        yield {"groups_names": [world.group]}
        yield {"groups_names": [world.group]}


@scenario(47)
def offset_delete(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(group: str, topic: str) -> dict[str, Any]:
        return {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}

    yield values(world.unique("group"), world.topic)
    with world.member() as member:
        member.stabilise()
        member.commit(world.topic, 2)
        member.leave()
    yield values(world.group, world.other)
    yield values(world.group, world.topic)
    yield values(world.group, world.topic)
