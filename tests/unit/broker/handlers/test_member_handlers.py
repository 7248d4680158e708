"""Joining, syncing and leaving at every version: what Apache Kafka 4.3.1 answered."""

import asyncio
import re
from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.requests import (
    SUBSCRIPTION,
    E,
    a_few_turns,
    join,
    join_fields,
    run,
    stable,
    sync,
    versions,
)
from tests.unit.coordinators.node import Node


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_with_protocols_out_of_all_number_is_refused(version: int) -> None:
    async def scenario() -> None:
        for count, refused in ((100, False), (101, True)):
            names = [("JoinGroupRequestProtocol", {"name": f"p{i}", "metadata": b""}) for i in range(count)]
            answer = await join(Node(), version, protocol_type="other", protocols=names)
            assert (answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL) is refused

    run(scenario)


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
        await a_few_turns()
        assert not second.done()
        fields = join_fields(9, member_id=first.member_id)
        again = await node.call(ApiKey.JOIN_GROUP, 9, **fields)
        assert (again.generation_id, len(again.members)) == (2, 2)
        assert (await second).generation_id == 2
        await node.groups.close()

    run(scenario)
