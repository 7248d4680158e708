"""Administration through the clients: topics, partitions, configs, records, log dirs, groups, offsets."""

import asyncio
import time

import confluent_kafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AiokafkaNewTopic
from confluent_kafka import ConsumerGroupTopicPartitions, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka.admin import NewTopic as KafkaPythonNewTopic

from tests.compat.clients import CLIENTS, Sent
from tests.support.group import Member
from tests.support.raw import Connection
from tests.support.topics import wait_until_led

TIMEOUT_S = 20
KafkaError = confluent_kafka.KafkaError


@pytest.fixture
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def kafka_python_admin(bootstrap):
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def wait_until(condition, timeout_s=TIMEOUT_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def code_of(future):
    with pytest.raises(confluent_kafka.KafkaException) as raised:
        future.result(TIMEOUT_S)
    return raised.value.args[0].code()


def create(admin, name, partitions=1, **kw):
    return admin.create_topics([NewTopic(name, partitions, 1, **kw)], request_timeout=TIMEOUT_S)[name]


def topic_config(admin, name):
    resource = ConfigResource(ResourceType.TOPIC, name)
    return admin.describe_configs([resource])[resource].result(TIMEOUT_S)


def test_topics_are_created_described_and_deleted(admin, unique):
    name = unique("t")
    create(admin, name, 3, config={"retention.ms": "3600000"}).result(TIMEOUT_S)
    described = admin.describe_topics(TopicCollection([name]))[name].result(TIMEOUT_S)
    assert [p.id for p in described.partitions] == [0, 1, 2]
    assert all(p.leader.id == p.replicas[0].id == p.isr[0].id for p in described.partitions)
    assert not described.is_internal
    assert name in admin.list_topics(timeout=TIMEOUT_S).topics
    assert topic_config(admin, name)["retention.ms"].value == "3600000"
    admin.delete_topics([name])[name].result(TIMEOUT_S)
    wait_until(lambda: name not in admin.list_topics(timeout=TIMEOUT_S).topics)


def test_a_topic_that_exists_or_cannot_be_is_refused(admin, topic, unique):
    assert code_of(create(admin, topic)) == KafkaError.TOPIC_ALREADY_EXISTS
    assert code_of(create(admin, "no/slash")) == KafkaError.TOPIC_EXCEPTION
    assert code_of(create(admin, "x" * 250)) == KafkaError.TOPIC_EXCEPTION
    name = unique("t")
    future = admin.create_topics([NewTopic(name, 1, 2)])[name]
    assert code_of(future) == KafkaError.INVALID_REPLICATION_FACTOR
    assert code_of(create(admin, name, config={"no.such.key": "1"})) == KafkaError.INVALID_CONFIG
    assert code_of(create(admin, name, config={"retention.ms": "soon"})) == KafkaError.INVALID_CONFIG
    assert code_of(admin.delete_topics([name])[name]) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_names_that_differ_only_in_dot_and_underscore_collide(admin, unique):
    stem = unique("t")
    create(admin, f"{stem}.a").result(TIMEOUT_S)
    assert code_of(create(admin, f"{stem}_a")) == KafkaError.TOPIC_EXCEPTION


def test_validate_only_creates_nothing(admin, unique):
    name = unique("t")
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(TIMEOUT_S)
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_a_deleted_topic_can_be_made_again_empty(bootstrap, admin, topic):
    CLIENTS[0].produce(bootstrap, topic, [Sent(b"old")])
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    wait_until(lambda: topic not in admin.list_topics(timeout=TIMEOUT_S).topics)
    create(admin, topic).result(TIMEOUT_S)
    assert CLIENTS[0].produce(bootstrap, topic, [Sent(b"new")]) == [0]
    assert [r.value for r in CLIENTS[0].consume(bootstrap, topic, 1)] == [b"new"]


def test_partitions_can_be_added_but_not_taken_away(admin, topic):
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(TIMEOUT_S)
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT_S)
    assert len(described.partitions) == 4
    for total in (4, 2):
        assert (
            code_of(admin.create_partitions([NewPartitions(topic, total)])[topic])
            == KafkaError.INVALID_PARTITIONS
        )


def test_configs_are_set_appended_subtracted_and_reset(admin, topic):
    def alter(name, value, operation):
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        return admin.incremental_alter_configs([resource])[resource]

    alter("retention.ms", "7200000", AlterConfigOpType.SET).result(TIMEOUT_S)
    wait_until(lambda: topic_config(admin, topic)["retention.ms"].value == "7200000")
    entry = topic_config(admin, topic)["retention.ms"]
    assert entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert not entry.is_default
    alter("cleanup.policy", "compact", AlterConfigOpType.APPEND).result(TIMEOUT_S)
    wait_until(lambda: topic_config(admin, topic)["cleanup.policy"].value == "delete,compact")
    alter("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT).result(TIMEOUT_S)
    wait_until(lambda: topic_config(admin, topic)["cleanup.policy"].value == "compact")
    alter("retention.ms", None, AlterConfigOpType.DELETE).result(TIMEOUT_S)
    wait_until(lambda: topic_config(admin, topic)["retention.ms"].is_default)
    assert topic_config(admin, topic)["retention.ms"].value == "604800000"
    assert code_of(alter("retention.ms", "x", AlterConfigOpType.SET)) == KafkaError.INVALID_CONFIG
    assert code_of(alter("no.such", "x", AlterConfigOpType.SET)) == KafkaError.INVALID_CONFIG


def test_a_broker_describes_its_configs(admin):
    node = next(iter(admin.list_topics(timeout=TIMEOUT_S).brokers))
    resource = ConfigResource(ResourceType.BROKER, str(node))
    entries = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    assert entries["num.io.threads"].value == "8"
    assert entries["node.id"].is_read_only
    assert entries["log.retention.hours"].value == "168"


def test_the_cluster_names_itself_and_its_node(admin):
    cluster = admin.describe_cluster().result(TIMEOUT_S)
    assert len(cluster.cluster_id) == 22
    assert [n.id for n in cluster.nodes] == [cluster.controller.id]


def test_records_are_deleted_up_to_an_offset(bootstrap, admin, topic):
    CLIENTS[0].produce(bootstrap, topic, [Sent(str(i).encode()) for i in range(10)])
    tp = TopicPartition(topic, 0, 6)
    assert admin.delete_records([tp])[tp].result(TIMEOUT_S).low_watermark == 6
    assert [r.offset for r in CLIENTS[1].consume(bootstrap, topic, 4, offset=6)] == [6, 7, 8, 9]


def test_kafka_python_administers_topics(kafka_python_admin, unique):
    name = unique("t")
    kafka_python_admin.create_topics([KafkaPythonNewTopic(name, num_partitions=2, replication_factor=1)])
    (described,) = kafka_python_admin.describe_topics([name])
    assert (described["name"], len(described["partitions"])) == (name, 2)
    assert name in kafka_python_admin.list_topics()
    assert kafka_python_admin.describe_cluster()["cluster_id"]
    kafka_python_admin.delete_topics([name])
    wait_until(lambda: name not in kafka_python_admin.list_topics())


def test_kafka_python_sees_the_log_dirs(bootstrap, kafka_python_admin, topic):
    CLIENTS[0].produce(bootstrap, topic, [Sent(b"x" * 1000)])
    found = repr(kafka_python_admin.describe_log_dirs())
    assert topic in found


def test_aiokafka_administers_topics(bootstrap, unique):
    async def run():
        name = unique("t")
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            await client.create_topics([AiokafkaNewTopic(name, num_partitions=2, replication_factor=1)])
            with Connection(bootstrap) as connection:
                wait_until_led(connection, name, 2)
            (described,) = await client.describe_topics([name])
            assert (described["topic"], len(described["partitions"])) == (name, 2)
            assert name in await client.list_topics()
            await client.delete_topics([name])
        finally:
            await client.close()

    asyncio.run(run())


@pytest.fixture
def group(bootstrap, unique, topic):
    """An empty group with an offset committed on the topic's only partition."""
    name = unique("group")
    with Member(bootstrap, name) as member:
        member.stabilise()
        assert member.commit(topic, 5, metadata="note") == 0
        assert member.leave().members[0].error_code == 0
    return name


def test_groups_are_listed_described_and_deleted(bootstrap, admin, group, topic):
    listed = {g.group_id: g for g in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert listed[group].state.name == "EMPTY"
    assert not listed[group].is_simple_consumer_group
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert (described.state.name, len(described.members)) == ("EMPTY", 0)
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    assert group not in {g.group_id for g in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert code_of(admin.delete_consumer_groups([group])[group]) == KafkaError.GROUP_ID_NOT_FOUND


def test_a_group_with_members_shows_them_and_is_not_deleted(bootstrap, admin, unique):
    group = unique("group")
    with Member(bootstrap, group) as member:
        member.stabilise()
        described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
        assert described.state.name == "STABLE"
        assert described.partition_assignor == "range"
        assert [(m.member_id, m.client_id) for m in described.members] == [(member.member_id, "raw")]
        assert described.members[0].host.endswith("127.0.0.1")
        assert code_of(admin.delete_consumer_groups([group])[group]) == KafkaError.NON_EMPTY_GROUP


def test_group_offsets_are_listed_and_altered(admin, group, topic):
    def offsets():
        request = ConsumerGroupTopicPartitions(group)
        found = admin.list_consumer_group_offsets([request])[group].result(TIMEOUT_S)
        return {(t.topic, t.partition): t.offset for t in found.topic_partitions}

    assert offsets() == {(topic, 0): 5}
    altered = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
    admin.alter_consumer_group_offsets([altered])[group].result(TIMEOUT_S)
    assert offsets() == {(topic, 0): 2}


def test_group_offsets_are_deleted(kafka_python_admin, group, topic):
    tp = kafka.TopicPartition(topic, 0)
    assert kafka_python_admin.list_group_offsets(group)[group][tp].offset == 5
    kafka_python_admin.delete_group_offsets(group, [tp])
    assert tp not in kafka_python_admin.list_group_offsets(group).get(group, {})


def test_kafka_python_lists_and_describes_groups(kafka_python_admin, group):
    assert group in repr(kafka_python_admin.list_groups())
    assert group in repr(kafka_python_admin.describe_groups([group]))


def test_producing_to_an_unknown_topic_creates_it(bootstrap, unique):
    for client in CLIENTS:
        name = unique("auto")
        assert client.produce(bootstrap, name, [Sent(b"first")]) == [0]
        assert [r.value for r in client.consume(bootstrap, name, 1)] == [b"first"]
