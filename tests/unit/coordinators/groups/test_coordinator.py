"""The group coordinator of a node: what it refuses before any group is asked, and whose partitions it has."""

import dataclasses
from typing import Any

import pytest

from odradek.core.types import coordinator_partition
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.requests import E, join_fields, run
from tests.unit.coordinators.node import PARTITIONS, Node


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (5_999, E.INVALID_SESSION_TIMEOUT),
        (6_000, E.NONE),
        (30_000, E.NONE),
        (30_001, E.INVALID_SESSION_TIMEOUT),
    ],
)
def test_a_session_timeout_may_be_at_the_bounds(timeout_ms: int, code: int) -> None:
    async def scenario() -> None:
        node = Node(min_session_timeout_ms=6_000, max_session_timeout_ms=30_000)
        fields = {**join_fields(3), "session_timeout": timeout_ms}
        assert (await node.call(ApiKey.JOIN_GROUP, 3, **fields)).error_code == code
        await node.groups.close()

    run(scenario)


@pytest.mark.parametrize(
    ("api_key", "version", "fields"),
    [
        (ApiKey.HEARTBEAT, 4, {"member_id": "m"}),
        (ApiKey.SYNC_GROUP, 4, {"member_id": "m"}),
        (ApiKey.LEAVE_GROUP, 4, {}),
    ],
)
def test_no_group_with_members_has_an_empty_id(api_key: ApiKey, version: int, fields: dict[str, Any]) -> None:
    async def scenario() -> None:
        node = Node()
        assert (await node.call(api_key, version, group_id="", **fields)).error_code == E.INVALID_GROUP_ID
        await node.groups.close()

    run(scenario)


def test_a_node_that_resigned_is_not_the_coordinator_any_more() -> None:
    async def scenario() -> None:
        node = Node()
        beat = {"group_id": "g", "member_id": "m"}
        assert (await node.call(ApiKey.HEARTBEAT, 4, **beat)).error_code == E.UNKNOWN_MEMBER_ID
        node.groups.on_resigned(coordinator_partition("g", PARTITIONS))
        assert (await node.call(ApiKey.HEARTBEAT, 4, **beat)).error_code == E.NOT_COORDINATOR
        await node.groups.close()

    run(scenario)


def test_settings_that_change_reach_the_groups_that_are_there() -> None:
    async def scenario() -> None:
        node = Node(max_session_timeout_ms=30_000)
        fields = {**join_fields(3), "session_timeout": 40_000}
        assert (await node.call(ApiKey.JOIN_GROUP, 3, **fields)).error_code == E.INVALID_SESSION_TIMEOUT
        changed = dataclasses.replace(node.groups.config, max_session_timeout_ms=60_000, max_size=1)
        node.groups.reconfigure(changed)
        assert {shard.config.max_size for shard in node.groups.shards()} == {1}
        assert (await node.call(ApiKey.JOIN_GROUP, 3, **fields)).error_code == E.NONE
        await node.groups.close()

    run(scenario)
