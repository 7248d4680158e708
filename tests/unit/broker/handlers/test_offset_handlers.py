"""Committing, fetching and deleting offsets at every version: what Apache Kafka 4.3.1 answered."""

import asyncio
from typing import Any

import pytest

from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.requests import (
    UNKNOWN_ID,
    E,
    a_few_turns,
    commit,
    commit_fields,
    fetch_group,
    run,
    stable,
    versions,
)
from tests.unit.coordinators.node import T_ID, U_ID, Node


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
        await a_few_turns()
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
