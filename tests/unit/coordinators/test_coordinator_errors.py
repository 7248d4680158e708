"""The answers of every group API when the coordinator is not available, as recorded from Apache Kafka
4.3.1."""

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import coordinator_partition
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.requests import E, a_few_turns, commit, fetch_group, join_fields, run
from tests.unit.coordinators.node import PARTITIONS, T_ID, Node


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
        await a_few_turns()
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
