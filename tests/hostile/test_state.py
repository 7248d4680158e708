"""Short requests with long work behind them: all topics, all offsets of a group, a session of partitions."""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request
from odradek.wire.messages import request_types
from tests.hostile.cases import Measured, measure, taken
from tests.hostile.names import RECORDS, Names
from tests.hostile.shapes import Shape, frame
from tests.hostile.stage import Client
from tests.hostile.world import StagedWorld, staged_world

PARTITIONS = 150
"""As many as twenty slices create; reading takes less, and has the wide topic."""


def request(api_key: ApiKey, version: int, name: str, **fields: Any) -> bytes:
    return encode_request(api_key, version, 1, "short", getattr(request_types(api_key), name)(**fields))


def _describe_configs(world: StagedWorld, client: Client) -> bytes:
    types = request_types(ApiKey.DESCRIBE_CONFIGS)
    resources = [
        types.DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)
        for topic in world.topics[:60]
    ]
    return request(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        "DescribeConfigsRequest",
        resources=resources,
        include_synonyms=True,
        include_documentation=True,
    )


def _offset_fetch(world: StagedWorld, client: Client) -> bytes:
    types = request_types(ApiKey.OFFSET_FETCH)
    group = types.OffsetFetchRequestGroup(group_id=world.groups[0], topics=None)
    return request(ApiKey.OFFSET_FETCH, 9, "OffsetFetchRequest", groups=[group], require_stable=True)


def _create_topic(world: StagedWorld, client: Client) -> bytes:
    topic = request_types(ApiKey.CREATE_TOPICS).CreatableTopic(
        name=world.fresh("broad"),
        num_partitions=PARTITIONS,
        replication_factor=1,
        assignments=[],
        configs=[],
    )
    return request(ApiKey.CREATE_TOPICS, 7, "CreateTopicsRequest", topics=[topic], timeout=30_000)


def _broad_topic(world: StagedWorld, client: Client) -> str:
    name = world.fresh("broad")
    world.create_topics(client, [name], PARTITIONS)
    return name


def _delete_topic(world: StagedWorld, client: Client) -> bytes:
    name = _broad_topic(world, client)
    state = request_types(ApiKey.DELETE_TOPICS).DeleteTopicState(name=name)
    return request(ApiKey.DELETE_TOPICS, 6, "DeleteTopicsRequest", topics=[state], timeout=30_000)


def _create_partitions(world: StagedWorld, client: Client) -> bytes:
    name = world.fresh("broad")
    world.create_topics(client, [name])
    topic = request_types(ApiKey.CREATE_PARTITIONS).CreatePartitionsTopic(
        name=name, count=PARTITIONS, assignments=None
    )
    return request(ApiKey.CREATE_PARTITIONS, 3, "CreatePartitionsRequest", topics=[topic], timeout=30_000)


def _alter_broker(world: StagedWorld, client: Client) -> bytes:
    """The default of a setting that every topic has."""
    types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    setting = types.AlterableConfig(name="log.retention.ms", config_operation=0, value="86400000")
    resource = types.AlterConfigsResource(resource_type=4, resource_name="", configs=[setting])
    return request(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, "IncrementalAlterConfigsRequest", resources=[resource]
    )


def _delete_group(world: StagedWorld, client: Client) -> bytes:
    group = world.fresh("doomed")
    world.commit(client, group, world.size.wide)
    return request(ApiKey.DELETE_GROUPS, 2, "DeleteGroupsRequest", groups_names=[group])


def _join_consumer_group(world: StagedWorld, client: Client) -> bytes:
    return request(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        "ConsumerGroupHeartbeatRequest",
        group_id=world.fresh("wide"),
        member_id="member",
        member_epoch=0,
        rebalance_timeout=30_000,
        subscribed_topic_names=["wide"],
        topic_partitions=[],
    )


def _end_transaction(world: StagedWorld, client: Client) -> bytes:
    """Of a producer that has every partition of a topic in it."""
    transactional_id = world.fresh("txn")
    producer_id, epoch = world.init_producer(client, transactional_id)
    types = request_types(ApiKey.ADD_PARTITIONS_TO_TXN)
    transaction = types.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[types.AddPartitionsToTxnTopic(name="wide", partitions=list(range(300)))],
    )
    answer = world.call(client, ApiKey.ADD_PARTITIONS_TO_TXN, 3, transactions=[transaction])
    assert len(answer.results_by_transaction[0].topic_results[0].results_by_partition) == 300
    return request(
        ApiKey.END_TXN,
        4,
        "EndTxnRequest",
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=True,
    )


def _no_fields(api_key: ApiKey, version: int, name: str, **fields: Any) -> "Make":
    return lambda world, client: request(api_key, version, name, **fields)


Make = Callable[[StagedWorld, Client], bytes]
SHORT: dict[str, Make] = {
    "metadata-of-all-topics": _no_fields(ApiKey.METADATA, 13, "MetadataRequest", topics=None),
    "metadata-v0-of-all-topics": _no_fields(ApiKey.METADATA, 0, "MetadataRequest", topics=[]),
    "describe-topic-partitions-of-all": _no_fields(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, "DescribeTopicPartitionsRequest", topics=[]
    ),
    "describe-log-dirs-of-all": _no_fields(
        ApiKey.DESCRIBE_LOG_DIRS, 5, "DescribeLogDirsRequest", topics=None
    ),
    "list-groups": _no_fields(ApiKey.LIST_GROUPS, 5, "ListGroupsRequest", states_filter=[], types_filter=[]),
    "list-transactions": _no_fields(
        ApiKey.LIST_TRANSACTIONS, 2, "ListTransactionsRequest", state_filters=[], producer_id_filters=[]
    ),
    "list-config-resources": _no_fields(
        ApiKey.LIST_CONFIG_RESOURCES, 1, "ListConfigResourcesRequest", resource_types=[]
    ),
    "describe-configs-of-all-keys": _describe_configs,
    "offset-fetch-of-all-topics": _offset_fetch,
    "create-a-topic-with-many-partitions": _create_topic,
    "create-many-partitions": _create_partitions,
    "delete-a-topic-with-many-partitions": _delete_topic,
    "delete-a-group-with-many-offsets": _delete_group,
    "alter-a-default-of-all-topics": _alter_broker,
    "join-a-group-with-many-partitions": _join_consumer_group,
    "end-a-transaction-of-many-partitions": _end_transaction,
}


@pytest.mark.parametrize("name", SHORT)
def test_a_short_request_with_long_work_is_sliced(world: StagedWorld, name: str) -> None:
    with world.stage.client() as client:
        for _ in range(2):  # the second time, handlers and codecs are there
            sent = SHORT[name](world, client)
            world.stage.wait_until_idle()
            measured = measure(world, name, sent)
    print(measured)
    measured.check()


def session_of_all_partitions(world: StagedWorld, client: Client) -> bytes:
    """Begin a fetch session over the wide topic; the request that asks all of it again."""
    shape = Shape("known", ("topics", "partitions"))
    answer = world.stage.ask(
        client, frame(ApiKey.FETCH, 18, shape, world.size.wide, Names(world, {"session_epoch": 0}))
    )
    assert answer is not None
    session = {"session_id": int.from_bytes(answer[11:15], "big"), "session_epoch": 1}
    return frame(ApiKey.FETCH, 18, Shape("unknown-tags"), 0, Names(world, session))


def test_a_fetch_of_a_session_of_many_partitions_is_sliced(world: StagedWorld) -> None:
    stage = world.stage
    with stage.client() as client:
        again = session_of_all_partitions(world, client)
        with stage.work.counting():
            assert stage.ask(client, again) is not None
            taken(world, "a fetch of a session", len(again)).check()


def test_a_fetch_of_many_partitions_with_records_is_sliced(world: StagedWorld) -> None:
    """Its reply has two pieces for each of them: all are handed to the connection, and sent, in turns."""
    stage, shape = world.stage, Shape("known", ("topics", "partitions"))
    with stage.client() as client:
        written = frame(
            ApiKey.PRODUCE, 13, Shape("known", ("topic_data", "partition_data")), 1_500, Names(world, {})
        )
        assert stage.ask(client, written) is not None
    asked = frame(ApiKey.FETCH, 18, shape, 1_500, Names(world, {"each fetch_offset": 0}))
    measured = measure(world, "a fetch of 1,500 partitions", asked)
    assert measured.answer_bytes > 250 * len(RECORDS)  # one reply keeps so many files open
    measured.check()


def test_a_connection_that_ends_is_let_go_in_slices(world: StagedWorld) -> None:
    """It has fetches parked on every partition of a topic."""
    stage = world.stage
    client = stage.connect()
    shape = Shape("known", ("topics", "partitions"))
    for _ in range(20):
        names = Names(world, {"max_wait": 30_000, "min_bytes": 1 << 30, "each fetch_offset": 0})
        client.send(frame(ApiKey.FETCH, 18, shape, 200, names))
    stage.wait_until_idle()
    with stage.work.counting():
        stage.disconnect(client)
        measured: Measured = taken(world, "the end of a connection")
    measured.check()


def test_a_connection_does_not_pile_up_fetches_that_wait(world: StagedWorld) -> None:
    """What is behind them is read when they are answered."""
    stage = world.stage
    (topic,) = world.topics[-1:]
    partition = stage.node.replicas.partition_of(topic, 0)
    types = request_types(ApiKey.FETCH)
    row = types.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    others = [
        types.FetchPartition(partition=i, fetch_offset=0, partition_max_bytes=1 << 20) for i in range(200)
    ]
    asked = request(
        ApiKey.FETCH,
        12,
        "FetchRequest",
        max_wait=30_000,
        min_bytes=1 << 30,
        max_bytes=1 << 30,
        session_epoch=-1,
        topics=[
            types.FetchTopic(topic=topic, partitions=[row]),
            types.FetchTopic(topic="wide", partitions=others),
        ],
    )
    with stage.client() as client:
        client.send(asked * 20)
        stage.wait_until_idle()
        assert len(partition.fetch_waiters.waiting) == 5  # of 201 partitions each
        for _ in range(20):
            stage.until(lambda: client.answer() is not None)
        assert not partition.fetch_waiters.waiting


def test_what_is_done_by_the_clock_is_sliced() -> None:
    """Ten minutes of a node with more than a thousand logs: checkpoints, retention, flushes, lost members."""
    with staged_world() as world:
        stage = world.stage
        with stage.work.counting():
            for _ in range(20):
                stage.loop.pass_time(30)
                stage.wait_until_idle()
            taken(world, "ten minutes").check()
