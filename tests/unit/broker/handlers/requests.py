"""Requests of the group APIs at any version, as the handlers' tests send them to a node."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

from odradek.broker.apis import SERVED
from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from tests.unit.coordinators.groups.harness import subscription
from tests.unit.coordinators.node import Node

E = ErrorCode
UNKNOWN_ID = UUID(int=12345)
SUBSCRIPTION = subscription("t")


def versions(api_key: ApiKey, since: int = 0, until: int = 99) -> list[int]:
    first, last = SERVED[api_key]
    return list(range(max(first, since), min(last, until) + 1))


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


async def a_few_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def join_fields(version: int, group_id: str = "g", member_id: str = "", **more: Any) -> dict[str, Any]:
    protocol = ("JoinGroupRequestProtocol", {"name": "range", "metadata": SUBSCRIPTION})
    return {
        "group_id": group_id,
        "member_id": member_id,
        "session_timeout": 10_000,
        "rebalance_timeout": 60_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
        **more,
    }


async def join(node: Node, version: int, group_id: str = "g", **more: Any) -> Any:
    """Join, with a second request where the version wants the id first."""
    answer = await node.call(ApiKey.JOIN_GROUP, version, **join_fields(version, group_id, **more))
    if answer.error_code == E.MEMBER_ID_REQUIRED:
        fields = join_fields(version, group_id, member_id=answer.member_id, **more)
        answer = await node.call(ApiKey.JOIN_GROUP, version, **fields)
    return answer


async def sync(node: Node, version: int, joined: Any, group_id: str = "g", **more: Any) -> Any:
    member_id = joined.member_id
    assignment = ("SyncGroupRequestAssignment", {"member_id": member_id, "assignment": b"mine"})
    fields = {
        "group_id": group_id,
        "member_id": member_id,
        "generation_id": joined.generation_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [assignment],
        **more,
    }
    return await node.call(ApiKey.SYNC_GROUP, version, **fields)


async def stable(node: Node, group_id: str = "g") -> str:
    joined = await join(node, 9, group_id)
    await sync(node, 5, joined, group_id)
    return str(joined.member_id)


def commit_fields(
    version: int,
    rows: list[tuple[str, UUID, int, int]],
    *,
    group_id: str = "g",
    member_id: str = "",
    generation_id: int = -1,
    metadata: str | None = "note",
) -> dict[str, Any]:
    topics = []
    for name, topic_id, partition, offset in rows:
        entry = {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_leader_epoch": 4,
            "committed_metadata": metadata,
        }
        partitions = [("OffsetCommitRequestPartition", entry)]
        topic = {"name": name, "topic_id": topic_id, "partitions": partitions}
        topics.append(("OffsetCommitRequestTopic", topic))
    return {
        "group_id": group_id,
        "member_id": member_id,
        "generation_id_or_member_epoch": generation_id,
        "topics": topics,
    }


async def commit(node: Node, version: int, rows: list[tuple[str, UUID, int, int]], **more: Any) -> list[int]:
    answer = await node.call(ApiKey.OFFSET_COMMIT, version, **commit_fields(version, rows, **more))
    return [p.error_code for t in answer.topics for p in t.partitions]


def fetch_group(
    group_id: str, topics: list[tuple[str, UUID, list[int]]] | None
) -> tuple[str, dict[str, Any]]:
    wanted = topics
    if topics is not None:
        wanted = [  # type: ignore[assignment]
            (
                "OffsetFetchRequestTopics",
                {"name": name, "topic_id": topic_id, "partition_indexes": partitions},
            )
            for name, topic_id, partitions in topics
        ]
    return "OffsetFetchRequestGroup", {"group_id": group_id, "topics": wanted}
