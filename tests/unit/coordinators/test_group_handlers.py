"""The group APIs at every version, as messages: what Apache Kafka 4.3.1 answered to the same requests."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest

from odradek.broker.apis import SERVED
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import coordinator_partition
from odradek.wire.api_keys import ApiKey

from .harness import subscription
from .node import PARTITIONS, T_ID, U_ID, Node

E = ErrorCode
UNKNOWN_ID = UUID(int=12345)
SUBSCRIPTION = subscription("t")


def versions(api_key: ApiKey, since: int = 0, until: int = 99) -> list[int]:
    first, last = SERVED[api_key]
    return list(range(max(first, since), min(last, until) + 1))


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


async def settle() -> None:
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


# --- members ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_joins_and_syncs_at_every_version(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        joined = await join(node, version)
        assert joined.error_code == E.NONE
        assert (joined.generation_id, joined.protocol_name, joined.leader) == (1, "range", joined.member_id)
        assert re.fullmatch(r"probe-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f-]{17}", joined.member_id)
        assert [m.metadata for m in joined.members] == [SUBSCRIPTION]
        assert joined.protocol_type == ("consumer" if version >= 7 else None)
        for sync_version in versions(ApiKey.SYNC_GROUP):
            synced = await sync(node, sync_version, joined)
            assert (synced.error_code, synced.assignment) == (E.NONE, b"mine")
        for beat_version in versions(ApiKey.HEARTBEAT):
            beat = await node.call(
                ApiKey.HEARTBEAT,
                beat_version,
                group_id="g",
                member_id=joined.member_id,
                generation_id=1,
            )
            assert beat.error_code == E.NONE
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_ids_are_required_from_v4_on(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        answer = await node.call(ApiKey.JOIN_GROUP, version, **join_fields(version))
        assert answer.error_code == (E.MEMBER_ID_REQUIRED if version >= 4 else E.NONE)
        assert answer.member_id
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"group_id": ""}, E.INVALID_GROUP_ID),
        ({"session_timeout": 5_999}, E.INVALID_SESSION_TIMEOUT),
        ({"session_timeout": 1_800_001}, E.INVALID_SESSION_TIMEOUT),
        ({"member_id": "ghost"}, E.UNKNOWN_MEMBER_ID),
        ({"protocols": []}, E.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_is_refused_at_every_version(version: int, more: dict[str, Any], code: ErrorCode) -> None:
    async def scenario() -> None:
        node = Node()
        answer = await node.call(ApiKey.JOIN_GROUP, version, **{**join_fields(version), **more})
        assert answer.error_code == code
        assert (answer.generation_id, answer.leader, list(answer.members)) == (-1, "", [])
        assert answer.member_id == more.get("member_id", "")
        assert answer.protocol_name == (None if version >= 7 else "")
        await node.groups.close()

    run(scenario)


def test_v0_rebalances_within_the_session_timeout() -> None:
    async def scenario() -> None:
        node = Node()
        await join(node, 0)
        (shard,) = [s for s in node.groups.shards() if s.groups]
        (member,) = shard.groups["g"].members.values()
        assert member.rebalance_timeout_ms == 10_000
        await node.groups.close()

    run(scenario)


def test_a_client_without_an_id_and_a_static_one_get_ids_named_after_what_they_have() -> None:
    async def scenario() -> None:
        node = Node()
        nameless = await node.send(ApiKey.JOIN_GROUP, 9, client_id=None, **join_fields(9))
        assert re.match(r"-[0-9a-f]{8}-", nameless.member_id)
        static = await join(node, 9, "h", group_instance_id="rack-1")
        assert re.match(r"rack-1-[0-9a-f]{8}-", static.member_id)
        await node.groups.close()

    run(scenario)


def test_a_protocol_named_twice_counts_once() -> None:
    async def scenario() -> None:
        node = Node()
        protocols = [
            ("JoinGroupRequestProtocol", {"name": name, "metadata": metadata})
            for name, metadata in [("range", b"first"), ("sticky", b""), ("range", b"second")]
        ]
        joined = await join(node, 9, protocols=protocols)
        assert (joined.protocol_name, joined.members[0].metadata) == ("range", b"first")
        await node.groups.close()

    run(scenario)


def test_from_v5_on_a_sync_names_its_protocol() -> None:
    async def scenario() -> None:
        node = Node()
        joined = await join(node, 9)
        answer = await sync(node, 5, joined, protocol_type=None)
        assert answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
        answer = await sync(node, 5, joined, protocol_name=None)
        assert answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_leaving_at_every_version(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        member_id = await stable(node)

        async def leave(group_id: str, who: str) -> Any:
            members = [("MemberIdentity", {"member_id": who})]
            return await node.call(
                ApiKey.LEAVE_GROUP, version, group_id=group_id, member_id=who, members=members
            )

        for group_id in ("g", "unknown"):
            answer = await leave(group_id, "ghost")
            if version >= 3:
                assert (answer.error_code, answer.members[0].error_code) == (E.NONE, E.UNKNOWN_MEMBER_ID)
            else:
                assert answer.error_code == E.UNKNOWN_MEMBER_ID
        assert (await leave("", "ghost")).error_code == E.INVALID_GROUP_ID
        answer = await leave("g", member_id)
        assert answer.error_code == E.NONE
        assert all(m.error_code == E.NONE for m in answer.members)
        await node.groups.close()

    run(scenario)


def test_a_joiner_waits_until_the_others_are_back() -> None:
    async def scenario() -> None:
        node = Node()
        first = await join(node, 9)
        await sync(node, 5, first)
        second = asyncio.ensure_future(join(node, 9))
        await settle()
        assert not second.done()
        fields = join_fields(9, member_id=first.member_id)
        again = await node.call(ApiKey.JOIN_GROUP, 9, **fields)
        assert (again.generation_id, len(again.members)) == (2, 2)
        assert (await second).generation_id == 2
        await node.groups.close()

    run(scenario)


# --- errors of the coordinator ----------------------------------------------------------------------------


def coordinator_codes(code: ErrorCode) -> dict[str, int]:
    return dict.fromkeys(
        ["join", "sync", "beat", "leave", "commit", "fetch", "delete", "describe", "drop"], code
    )


async def ask_everything(node: Node) -> dict[str, int]:
    call = node.call
    topics = [
        ("OffsetDeleteRequestTopic", {"name": "t", "partitions": [("OffsetDeleteRequestPartition", {})]})
    ]
    group = fetch_group("g", [("t", T_ID, [0])])
    leaving = [("MemberIdentity", {"member_id": "m"})]
    sync_fields = {"group_id": "g", "member_id": "m", "protocol_type": "consumer", "protocol_name": "range"}
    return {
        "join": (await call(ApiKey.JOIN_GROUP, 9, **join_fields(9))).error_code,
        "sync": (await call(ApiKey.SYNC_GROUP, 5, **sync_fields)).error_code,
        "beat": (await call(ApiKey.HEARTBEAT, 4, group_id="g", member_id="m")).error_code,
        "leave": (await call(ApiKey.LEAVE_GROUP, 5, group_id="g", members=leaving)).error_code,
        "commit": (await commit(node, 9, [("t", T_ID, 0, 5)]))[0],
        "fetch": (await call(ApiKey.OFFSET_FETCH, 9, groups=[group])).groups[0].error_code,
        "delete": (await call(ApiKey.OFFSET_DELETE, 0, group_id="g", topics=topics)).error_code,
        "describe": (await call(ApiKey.DESCRIBE_GROUPS, 6, groups=["g"])).groups[0].error_code,
        "drop": (await call(ApiKey.DELETE_GROUPS, 2, groups_names=["g"])).results[0].error_code,
    }


def test_a_node_that_does_not_lead_the_partition_is_not_the_coordinator() -> None:
    async def scenario() -> None:
        node = Node(elected=False)
        assert await ask_everything(node) == coordinator_codes(E.NOT_COORDINATOR)
        assert list((await node.call(ApiKey.LIST_GROUPS, 5)).groups) == []
        await node.groups.close()

    run(scenario)


def test_while_groups_load_only_heartbeats_are_fine() -> None:
    async def scenario() -> None:
        node = Node()
        await commit(node, 9, [("t", T_ID, 0, 5)])
        log = node.logs[coordinator_partition("g", PARTITIONS)]
        node.groups.on_elected(coordinator_partition("g", PARTITIONS), log)
        expected = {**coordinator_codes(E.COORDINATOR_LOAD_IN_PROGRESS), "beat": E.NONE}
        assert await ask_everything(node) == expected
        listed = await node.call(ApiKey.LIST_GROUPS, 5)
        assert (listed.error_code, list(listed.groups)) == (E.COORDINATOR_LOAD_IN_PROGRESS, [])
        await settle()
        assert (await node.call(ApiKey.LIST_GROUPS, 5)).groups[0].group_id == "g"
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize(
    ("of_log", "commits", "joins"),
    [
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE, E.UNKNOWN_SERVER_ERROR),
        (E.RECORD_LIST_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_append_error_becomes_the_coordinators(
    of_log: ErrorCode, commits: ErrorCode, joins: ErrorCode
) -> None:
    async def scenario() -> None:
        node = Node()
        for log in node.logs:
            log.error = KafkaError(of_log)
        assert await commit(node, 9, [("t", T_ID, 0, 5)]) == [commits]
        answer = await node.call(ApiKey.JOIN_GROUP, 9, **join_fields(9))
        assert answer.error_code == joins
        await node.groups.close()

    run(scenario)


def test_a_commit_that_is_not_replicated_in_time_is_not_available() -> None:
    async def scenario() -> None:
        node = Node(held=True, offsets_commit_timeout_ms=20)
        assert await commit(node, 9, [("t", T_ID, 0, 5)]) == [E.COORDINATOR_NOT_AVAILABLE]
        await node.groups.close()

    run(scenario)


# --- offsets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_commits_at_every_version_name_what_is_wrong(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        rows = [("t", T_ID, 0, 5), ("t", T_ID, 9, 5), ("nope", UNKNOWN_ID, 0, 5), ("u", U_ID, 0, 6)]
        unknown = E.UNKNOWN_TOPIC_ID if version >= 10 else E.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(node, version, rows) == [0, E.UNKNOWN_TOPIC_OR_PARTITION, unknown, 0]
        assert await commit(node, version, [], group_id="other") == []
        assert await commit(node, version, rows[1:2], group_id="other") == [E.UNKNOWN_TOPIC_OR_PARTITION]
        missing = E.GROUP_ID_NOT_FOUND if version >= 9 else E.ILLEGAL_GENERATION
        assert await commit(node, version, rows[:1], group_id="other", generation_id=3) == [missing]
        assert [g.group_id for g in (await node.call(ApiKey.LIST_GROUPS, 5)).groups] == ["g"]
        answer = await node.call(ApiKey.OFFSET_FETCH, 9, groups=[fetch_group("g", None)])
        rows_read = {
            (t.name, p.partition_index): (p.committed_offset, p.committed_leader_epoch, p.metadata)
            for t in answer.groups[0].topics
            for p in t.partitions
        }
        epoch = 4 if version >= 6 else -1
        assert rows_read == {("t", 0): (5, epoch, "note"), ("u", 0): (6, epoch, "note")}
        await node.groups.close()

    run(scenario)


def test_a_commit_without_metadata_is_read_as_an_empty_text() -> None:
    async def scenario() -> None:
        node = Node()
        await commit(node, 9, [("t", T_ID, 0, 5)], metadata=None)
        answer = await node.call(ApiKey.OFFSET_FETCH, 9, groups=[fetch_group("g", None)])
        assert answer.groups[0].topics[0].partitions[0].metadata == ""
        await node.groups.close()

    run(scenario)


def test_a_commit_of_an_old_client_brings_its_own_retention() -> None:
    async def scenario() -> None:
        node = Node()
        fields = {**commit_fields(4, [("t", T_ID, 0, 5)]), "retention_time": 1_000}
        await node.call(ApiKey.OFFSET_COMMIT, 4, **fields)
        (shard,) = [s for s in node.groups.shards() if s.groups]
        offset = shard.offsets.get("g", "t", 0)
        assert offset is not None
        assert offset.expire_timestamp_ms == offset.commit_timestamp_ms + 1_000
        await node.groups.close()

    run(scenario)


def test_the_empty_group_id_may_keep_offsets_but_no_members() -> None:
    async def scenario() -> None:
        node = Node()
        assert await commit(node, 9, [("t", T_ID, 0, 5)], group_id="") == [E.NONE]
        answer = await node.call(ApiKey.OFFSET_FETCH, 9, groups=[fetch_group("", None)])
        assert answer.groups[0].topics[0].partitions[0].committed_offset == 5
        described = await node.call(ApiKey.DESCRIBE_GROUPS, 6, groups=[""])
        assert (described.groups[0].error_code, described.groups[0].group_state) == (E.NONE, "Empty")
        assert (await node.call(ApiKey.DELETE_GROUPS, 2, groups_names=[""])).results[0].error_code == E.NONE
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
def test_fetches_at_every_version(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        await commit(node, 9, [("t", T_ID, 0, 5), ("u", U_ID, 0, 6)])
        group = fetch_group("g", [("nope", UNKNOWN_ID, [0]), ("t", T_ID, [0, 1])])
        answer = await node.call(ApiKey.OFFSET_FETCH, version, groups=[group])
        (found,) = answer.groups
        assert found.error_code == E.NONE
        rows = {
            (t.topic_id if version >= 10 else t.name, p.partition_index): (p.committed_offset, p.error_code)
            for t in found.topics
            for p in t.partitions
        }
        if version >= 10:
            assert list(rows) == [(T_ID, 0), (T_ID, 1), (UNKNOWN_ID, 0)]
            assert list(rows.values()) == [(5, 0), (-1, 0), (-1, E.UNKNOWN_TOPIC_ID)]
        else:
            assert rows == {("nope", 0): (-1, 0), ("t", 0): (5, 0), ("t", 1): (-1, 0)}
        if version >= 2:
            (everything,) = (
                await node.call(ApiKey.OFFSET_FETCH, version, groups=[fetch_group("g", None)])
            ).groups
            assert [p.committed_offset for t in everything.topics for p in t.partitions] == [5, 6]
            nobody = await node.call(ApiKey.OFFSET_FETCH, version, groups=[fetch_group("nobody", None)])
            assert (nobody.groups[0].error_code, list(nobody.groups[0].topics)) == (E.NONE, [])
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH, since=8))
def test_several_groups_are_fetched_at_once(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        await commit(node, 9, [("t", T_ID, 0, 5)])
        await commit(node, 9, [("t", T_ID, 1, 7)], group_id="h")
        wanted = [fetch_group("h", None), fetch_group("x", [("t", T_ID, [0])]), fetch_group("g", None)]
        answer = await node.call(ApiKey.OFFSET_FETCH, version, groups=wanted)
        found = [
            (g.group_id, [p.committed_offset for t in g.topics for p in t.partitions]) for g in answer.groups
        ]
        assert found == [("h", [7]), ("x", [-1]), ("g", [5])]
        await node.groups.close()

    run(scenario)


def test_v1_carries_a_groups_error_in_every_partition() -> None:
    async def scenario() -> None:
        node = Node(elected=False)
        group = fetch_group("g", [("t", T_ID, [0, 1])])
        answer = await node.call(ApiKey.OFFSET_FETCH, 1, groups=[group])
        codes = [p.error_code for t in answer.groups[0].topics for p in t.partitions]
        assert codes == [E.NOT_COORDINATOR] * 2
        await node.groups.close()

    run(scenario)


def test_v10_does_not_show_what_is_left_of_deleted_topics() -> None:
    async def scenario() -> None:
        node = Node()
        await commit(node, 9, [("t", T_ID, 0, 5), ("u", U_ID, 0, 6)])
        del node.metadata.image.topics_by_name["u"]
        answer = await node.call(ApiKey.OFFSET_FETCH, 10, groups=[fetch_group("g", None)])
        assert [t.topic_id for t in answer.groups[0].topics] == [T_ID]
        await node.groups.close()

    run(scenario)


def test_offsets_of_deleted_topics_are_forgotten() -> None:
    async def scenario() -> None:
        node = Node()
        await commit(node, 9, [("t", T_ID, 0, 5), ("u", U_ID, 0, 6)])
        node.groups.on_topics_deleted({"u": U_ID})
        await settle()
        answer = await node.call(ApiKey.OFFSET_FETCH, 9, groups=[fetch_group("g", None)])
        assert [t.name for t in answer.groups[0].topics] == ["t"]
        await node.groups.close()

    run(scenario)


def test_offsets_expire_at_the_check_interval() -> None:
    async def scenario() -> None:
        node = Node(offsets_retention_ms=0, offsets_retention_check_interval_ms=5)
        await commit(node, 9, [("t", T_ID, 0, 5)])
        node.groups.start()
        while any(shard.groups for shard in node.groups.shards()):
            await asyncio.sleep(0.002)
        await node.groups.close()

    run(scenario)


def test_deleting_offsets() -> None:
    async def scenario() -> None:
        node = Node()
        member_id = await stable(node)
        await commit(node, 9, [("t", T_ID, 0, 5), ("u", U_ID, 0, 6)], member_id=member_id, generation_id=1)

        async def delete(group_id: str, *names: str) -> Any:
            partition = [("OffsetDeleteRequestPartition", {"partition_index": i}) for i in (0, 7)]
            topics = [("OffsetDeleteRequestTopic", {"name": n, "partitions": partition}) for n in names]
            return await node.call(ApiKey.OFFSET_DELETE, 0, group_id=group_id, topics=topics)

        answer = await delete("g", "t", "u", "nope")
        unknown = E.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.error_code == E.NONE
        assert {t.name: [p.error_code for p in t.partitions] for t in answer.topics} == {
            "t": [E.GROUP_SUBSCRIBED_TO_TOPIC, unknown],
            "u": [E.NONE, unknown],
            "nope": [unknown, unknown],
        }
        for group_id, code in [("unknown", E.GROUP_ID_NOT_FOUND), ("", E.INVALID_GROUP_ID)]:
            answer = await delete(group_id, "t")
            assert (answer.error_code, list(answer.topics)) == (code, [])
        await node.groups.close()

    run(scenario)


# --- administration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_groups_are_listed_at_every_version(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        await stable(node)
        await commit(node, 9, [("t", T_ID, 0, 5)], group_id="simple")
        listed = await node.call(ApiKey.LIST_GROUPS, version)
        rows = {g.group_id: (g.protocol_type, g.group_state, g.group_type) for g in listed.groups}
        assert {name: row[0] for name, row in rows.items()} == {"g": "consumer", "simple": ""}
        if version >= 4:
            assert {name: row[1] for name, row in rows.items()} == {"g": "Stable", "simple": "Empty"}
            only = await node.call(ApiKey.LIST_GROUPS, version, states_filter=["eMPTY"])
            assert [g.group_id for g in only.groups] == ["simple"]
        if version >= 5:
            assert {row[2] for row in rows.values()} == {"classic"}
            assert len((await node.call(ApiKey.LIST_GROUPS, version, types_filter=["Classic"])).groups) == 2
            assert len((await node.call(ApiKey.LIST_GROUPS, version, types_filter=["share"])).groups) == 0
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
def test_groups_are_described_at_every_version(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        member_id = await stable(node)
        answer = await node.call(
            ApiKey.DESCRIBE_GROUPS, version, groups=["unknown", "g"], include_authorized_operations=True
        )
        unknown, known = answer.groups
        assert (known.group_state, known.protocol_type, known.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        (member,) = known.members
        assert (member.member_id, member.client_id, member.client_host) == (member_id, "probe", "/127.0.0.1")
        assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"mine")
        assert known.authorized_operations == (3400 if version >= 3 else -(1 << 31))
        assert (unknown.group_id, unknown.group_state, list(unknown.members)) == ("unknown", "Dead", [])
        if version >= 6:
            assert (unknown.error_code, unknown.error_message) == (
                E.GROUP_ID_NOT_FOUND,
                "Group unknown not found.",
            )
            assert unknown.authorized_operations == -(1 << 31)
        else:
            assert unknown.error_code == E.NONE
            assert unknown.authorized_operations == (3400 if version >= 3 else -(1 << 31))
        await node.groups.close()

    run(scenario)


def test_a_group_that_is_named_again_is_answered_once() -> None:
    async def scenario() -> None:
        node = Node()
        await stable(node)
        await commit(node, 9, [("t", T_ID, 0, 5)], group_id="simple")
        described = await node.call(ApiKey.DESCRIBE_GROUPS, 6, groups=["g", "unknown"] * 50)
        assert [group.group_id for group in described.groups] == ["g", "unknown"]
        wanted = [fetch_group("simple", None), fetch_group("nobody", None)] * 50
        fetched = await node.call(ApiKey.OFFSET_FETCH, 9, groups=wanted)
        assert [group.group_id for group in fetched.groups] == ["simple", "nobody"]
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_groups_are_deleted_at_every_version(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        await stable(node)
        await commit(node, 9, [("t", T_ID, 0, 5)], group_id="simple")
        names = ["simple", "unknown", "g", "simple"]
        answer = await node.call(ApiKey.DELETE_GROUPS, version, groups_names=names)
        assert [(r.group_id, r.error_code) for r in answer.results] == [
            ("simple", E.NONE),
            ("unknown", E.GROUP_ID_NOT_FOUND),
            ("g", E.NON_EMPTY_GROUP),
        ]
        await node.groups.close()

    run(scenario)


# --- finding the coordinator ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_the_coordinator_is_found_at_every_version(version: int) -> None:
    async def scenario() -> None:
        node = Node(elected=False)
        for _ in range(2):  # the first time the topic is created
            answer = await node.call(ApiKey.FIND_COORDINATOR, version, coordinator_keys=["g"])
            (found,) = answer.coordinators
            assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "localhost", 9092)
            assert found.error_message == {0: "", 1: "NONE", 2: "NONE", 3: "NONE"}.get(version, "")
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR, since=4))
def test_several_coordinators_are_found_at_once(version: int) -> None:
    async def scenario() -> None:
        node = Node()
        answer = await node.call(ApiKey.FIND_COORDINATOR, version, coordinator_keys=["g", "", "h"])
        assert [(c.key, c.node_id, c.error_code) for c in answer.coordinators] == [
            ("g", 1, 0),
            ("", 1, 0),
            ("h", 1, 0),
        ]
        assert (
            list((await node.call(ApiKey.FIND_COORDINATOR, version, coordinator_keys=[])).coordinators) == []
        )
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR, since=1))
@pytest.mark.parametrize(
    ("key_type", "code"), [(1, E.UNSUPPORTED_VERSION), (2, E.INVALID_REQUEST), (7, E.INVALID_REQUEST)]
)
def test_what_is_no_group_has_no_coordinator_here(version: int, key_type: int, code: ErrorCode) -> None:
    async def scenario() -> None:
        node = Node()
        answer = await node.call(ApiKey.FIND_COORDINATOR, version, key_type=key_type, coordinator_keys=["x"])
        (found,) = answer.coordinators
        assert (found.error_code, found.node_id, found.host, found.port) == (code, -1, "", -1)
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize(("version", "message"), [(1, "The coordinator is not available."), (6, "")])
def test_a_coordinator_without_a_leader_or_a_topic_is_not_available(version: int, message: str) -> None:
    async def scenario() -> None:
        without_leader = Node(elected=False)
        without_leader.add_offsets_topic(leader=-1)
        without_topic = Node(elected=False)
        without_topic.internal_topics.error = KafkaError(E.INVALID_REPLICATION_FACTOR)
        for node in (without_leader, without_topic):
            answer = await node.call(ApiKey.FIND_COORDINATOR, version, coordinator_keys=["g"])
            (found,) = answer.coordinators
            assert found.error_code == E.COORDINATOR_NOT_AVAILABLE
            assert found.error_message == message
            await node.groups.close()

    run(scenario)
