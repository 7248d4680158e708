"""Groups listed, described, deleted and found at every version: what Apache Kafka 4.3.1 answered."""

import asyncio
from types import SimpleNamespace

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.requests import SUBSCRIPTION, E, commit, fetch_group, run, stable, versions
from tests.unit.coordinators.node import T_ID, Node


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
@pytest.mark.parametrize(("key_type", "code"), [(2, E.INVALID_REQUEST), (7, E.INVALID_REQUEST)])
def test_what_is_no_group_has_no_coordinator_here(version: int, key_type: int, code: ErrorCode) -> None:
    async def scenario() -> None:
        node = Node()
        answer = await node.call(ApiKey.FIND_COORDINATOR, version, key_type=key_type, coordinator_keys=["x"])
        (found,) = answer.coordinators
        assert (found.error_code, found.node_id, found.host, found.port) == (code, -1, "", -1)
        await node.groups.close()

    run(scenario)


def test_a_coordinator_whose_new_topic_is_not_in_the_image_yet_is_not_available() -> None:
    """The controller on another node has created it; this node's image follows."""

    async def scenario() -> None:
        node = Node(elected=False)
        node.internal_topics = SimpleNamespace(ensure=lambda name: asyncio.sleep(0))  # type: ignore[assignment]
        answer = await node.call(ApiKey.FIND_COORDINATOR, 6, coordinator_keys=["g"])
        (found,) = answer.coordinators
        assert found.error_code == E.COORDINATOR_NOT_AVAILABLE
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
