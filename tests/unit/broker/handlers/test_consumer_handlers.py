"""The handlers of consumer groups: invalid requests, refused clients, and the answers."""

import uuid
from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.requests import run
from tests.unit.coordinators.node import Node

HEARTBEAT, DESCRIBE = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE


def joining(**over: Any) -> dict[str, Any]:
    return {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout": 1_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
        **over,
    }


@pytest.mark.parametrize(
    ("over", "text"),
    [
        ({"group_id": "\t "}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"subscribed_topic_names": ["t"] * 10_001}, "A member may name 10000 topics at most."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_requests_that_no_group_takes_say_what_is_wrong(over: dict[str, Any], text: str) -> None:
    async def scenario() -> None:
        answer = await Node().call(HEARTBEAT, 1, **joining(**over))
        assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, text)

    run(scenario)


def test_a_client_without_an_id_of_its_own_is_given_one_below_v1() -> None:
    async def scenario() -> None:
        node = Node()
        answer = await node.call(HEARTBEAT, 0, **joining(member_id=""))
        assert answer.error_code == ErrorCode.NONE
        assert len(answer.member_id) == 22
        again = await node.call(HEARTBEAT, 0, **joining(member_id=answer.member_id))
        assert again.member_id == answer.member_id

    run(scenario)


def test_an_assignor_that_the_node_does_not_have_is_refused() -> None:
    async def scenario() -> None:
        answer = await Node().call(HEARTBEAT, 1, **joining(server_assignor="sticky"))
        assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
        assert "uniform, range" in answer.error_message

    run(scenario)


@pytest.mark.parametrize(("version", "is_configured"), [(0, True), (1, False)])
def test_without_group_version_1_and_the_setting_nothing_is_served(version: int, is_configured: bool) -> None:
    async def scenario() -> None:
        node = Node(consumer_protocol=is_configured)
        node.features["group.version"] = version
        assert (await node.call(HEARTBEAT, 1, **joining())).error_code == ErrorCode.UNSUPPORTED_VERSION
        (group,) = (await node.call(DESCRIBE, 1, group_ids=["g"])).groups
        assert (group.group_id, group.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)

    run(scenario)


def test_a_node_that_does_not_coordinate_the_group_says_so() -> None:
    async def scenario() -> None:
        node = Node(elected=False)
        assert (await node.call(HEARTBEAT, 1, **joining())).error_code == ErrorCode.NOT_COORDINATOR
        (group,) = (await node.call(DESCRIBE, 1, group_ids=["g"])).groups
        assert group.error_code == ErrorCode.NOT_COORDINATOR

    run(scenario)


def test_a_group_named_twice_is_described_once() -> None:
    async def scenario() -> None:
        answer = await Node().call(DESCRIBE, 1, group_ids=["g", "", "g"])
        assert [(g.group_id, g.error_code) for g in answer.groups] == [
            ("g", ErrorCode.GROUP_ID_NOT_FOUND),
            ("", ErrorCode.INVALID_GROUP_ID),
        ]

    run(scenario)


def test_partitions_of_one_topic_in_two_rows_are_owned_all_the_same() -> None:
    async def scenario() -> None:
        node = Node()
        joined = await node.call(HEARTBEAT, 1, **joining())
        topic_id = uuid.UUID(int=7)
        rows = [("TopicPartitions", {"topic_id": topic_id, "partitions": [i]}) for i in range(2)]
        answer = await node.call(
            HEARTBEAT,
            1,
            **joining(member_epoch=joined.member_epoch, subscribed_topic_names=None, topic_partitions=rows),
        )
        assert answer.error_code == ErrorCode.NONE

    run(scenario)
