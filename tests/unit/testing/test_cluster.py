"""Three brokers under the `kafka` fixture, and what a test does to them, as a real client meets it."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.core.types import TopicPartition
from odradek.raft.roles import Follower
from odradek.testing import Cluster, Kafka, KafkaServer

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    found = KafkaServer.embedded({}, brokers=3)
    yield found
    found.close()


@pytest.fixture
def kafka(server: KafkaServer) -> Iterator[Kafka]:
    view = Kafka(server)
    yield view
    view.close()


@pytest.fixture
def cluster(kafka: Kafka) -> Cluster:
    assert kafka.server.cluster is not None
    return kafka.server.cluster


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)
    return found


def spread(kafka: Kafka) -> tuple[str, dict[int, int]]:
    """A topic with a partition on each broker, and on no other; which one is on which."""
    topic = kafka.topic("spread", partitions=3, replicas=1)
    described = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(topic, timeout=20)
    found = {partition.leader: index for index, partition in described.topics[topic].partitions.items()}
    assert sorted(found) == [1, 2, 3]
    return topic, found


def deliver(kafka: Kafka, topic: str, partition: int, value: str, timeout_s: float = DEADLINE_S) -> list[str]:
    """The errors of one record, none when it is acknowledged."""
    errors: list[str] = []
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "message.timeout.ms": int(timeout_s * 1000)}
    )
    producer.produce(
        topic, value, partition=partition, on_delivery=lambda error, _: error and errors.append(error.name())
    )
    assert producer.flush(DEADLINE_S + timeout_s) == 0
    return errors


def create(kafka: Kafka, name: str) -> None:
    """By a client. It may ask a broker that does not answer: then it asks again."""

    def is_created() -> bool:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        made = admin.create_topics([NewTopic(name, 1, 1)], request_timeout=1.0)
        try:
            made[name].result(DEADLINE_S)
        except KafkaException as e:
            return bool(e.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    until(is_created)


def test_a_topic_lies_on_three_brokers_and_a_group_reads_it(kafka: Kafka) -> None:
    topic, led = spread(kafka)
    for broker, partition in led.items():
        assert deliver(kafka, topic, partition, str(broker)) == []
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": kafka.group(),
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    read = {message.value() for message in consumer.consume(3, DEADLINE_S)}
    consumer.close()
    assert read == {b"1", b"2", b"3"} == set(kafka.values(topic, n=3))


def test_what_a_test_made_is_gone_from_every_broker(server: KafkaServer) -> None:
    view = Kafka(server)
    topic = view.topic(partitions=3)
    client, group = server.client, view.group()
    with client.producer() as producer:
        producer.deliver(topic, b"a")
    client.call(client.admin.commit, group, {TopicPartition(topic, 0): 1})
    view.close()
    assert server.cluster is not None
    for broker in server.cluster.brokers.values():
        assert broker.contents() == ({}, ())


@pytest.mark.parametrize("is_controller", [True, False], ids=["the controller", "another"])
def test_the_others_go_on_while_a_broker_is_down(kafka: Kafka, cluster: Cluster, is_controller: bool) -> None:
    topic, led = spread(kafka)
    active = cluster.controller_id()
    broker = next(n for n in led if (n == active) is is_controller)
    assert deliver(kafka, topic, led[broker], "before") == []
    with kafka.faults.broker_down(leader_of=f"{topic}-{led[broker]}"):
        assert cluster.brokers[broker].node is None
        assert deliver(kafka, topic, led[broker], "lost", timeout_s=0.5) == ["_MSG_TIMED_OUT"]
        for other in {*led} - {broker}:
            assert deliver(kafka, topic, led[other], "meanwhile") == []
        create(kafka, "during")
        now_active = cluster.controller_id()
        assert now_active != broker and (is_controller or now_active == active)
    assert deliver(kafka, topic, led[broker], "after") == []
    assert sorted(kafka.values(topic, n=4)) == [b"after", b"before", b"meanwhile", b"meanwhile"]


@pytest.mark.parametrize("is_controller", [True, False], ids=["the controller", "another"])
def test_another_leader_is_elected_while_a_broker_is_down(
    kafka: Kafka, cluster: Cluster, is_controller: bool
) -> None:
    topic, active = kafka.topic("replicated", partitions=3), cluster.controller_id()
    led = {cluster.leader_of((topic, partition)): partition for partition in range(3)}
    partition = next(partition for leader, partition in led.items() if (leader == active) is is_controller)
    before = cluster.leader_of((topic, partition))
    assert deliver(kafka, topic, partition, "before") == []
    with kafka.faults.broker_down(leader_of=(topic, partition)):
        assert cluster.leader_of((topic, partition)) not in (None, before)
        assert deliver(kafka, topic, partition, "during") == []
        assert [record.value for record in kafka.records(topic, n=2)] == [b"before", b"during"]
    assert deliver(kafka, topic, partition, "after") == []
    assert kafka.values(topic, n=3) == [b"before", b"during", b"after"]


def test_a_group_goes_on_while_its_coordinator_is_down(kafka: Kafka) -> None:
    topic, group, client = kafka.topic("replicated"), kafka.group(), kafka.server.client
    client.call(client.admin.commit, group, {TopicPartition(topic, 0): 7})
    with kafka.faults.broker_down(client.coordinator(group)):
        found = client.call(client.admin.committed, group)
        assert {tp: row.committed_offset for tp, row in found.items()} == {TopicPartition(topic, 0): 7}


def test_a_paused_controller_is_replaced_and_decides_nothing_when_it_goes_on(
    kafka: Kafka, cluster: Cluster
) -> None:
    topic, led = spread(kafka)
    active = cluster.controller_id()
    assert active is not None
    with kafka.faults.paused(active):
        until(cluster.controller_id)
        create(kafka, "during")
        assert deliver(kafka, topic, led[active], "lost", timeout_s=0.5) == ["_MSG_TIMED_OUT"]
    assert cluster.controller_id() not in (None, active)
    assert deliver(kafka, topic, led[active], "after") == []
    for broker in cluster.brokers.values():
        assert broker.look(lambda node: "during" in node.metadata.image.topics_by_name)


def test_a_broker_that_stands_still_for_a_moment_stays_what_it_is(kafka: Kafka, cluster: Cluster) -> None:
    """Its loop stands still for as long as an election takes: that is its own fault, not that of a peer."""
    active = cluster.controller_id()
    follower = next(n for n in cluster.brokers if n != active)
    epoch = cluster.brokers[follower].look(lambda node: node.quorum.raft.epoch)
    with kafka.faults.paused(follower):
        time.sleep(2.5)
    assert cluster.controller_id() == active
    assert cluster.brokers[follower].look(lambda node: node.quorum.raft.epoch) == epoch


def test_brokers_that_are_cut_off_do_not_hear_each_other_and_catch_up_later(
    kafka: Kafka, cluster: Cluster
) -> None:
    topic, led = spread(kafka)
    active = cluster.controller_id()
    assert active is not None
    third, cut = (n for n in led if n != active)
    with kafka.faults.partitioned(active, cut):
        for partition in led.values():
            assert deliver(kafka, topic, partition, "clients reach all") == []
        create(kafka, "during")
        until(lambda: cluster.brokers[third].look(lambda n: "during" in n.metadata.image.topics_by_name))
        unattached = cluster.brokers[cut]
        until(lambda: unattached.look(lambda node: not isinstance(node.quorum.raft.node.role, Follower)))
        assert unattached.look(lambda node: "during" not in node.metadata.image.topics_by_name)
        assert cluster.controller_id() == active, "the third still follows it, and elects nobody else"
    assert cluster.brokers[cut].look(lambda node: "during" in node.metadata.image.topics_by_name)


def test_a_leader_that_is_cut_off_from_both_others_resigns(kafka: Kafka, cluster: Cluster) -> None:
    active = cluster.controller_id()
    assert active is not None
    a, b = (n for n in cluster.brokers if n != active)
    with kafka.faults.partitioned(active, a), kafka.faults.partitioned(b, active):
        until(lambda: cluster.controller_id() in (a, b))
        until(lambda: not cluster.brokers[active].look(lambda node: node.quorum.is_active))
        create(kafka, "during")
    assert cluster.controller_id() in (a, b)


def test_a_planted_error_is_met_once_wherever_it_is_met(kafka: Kafka) -> None:
    topic, led = spread(kafka)
    kafka.faults.errors("Produce", "TOPIC_AUTHORIZATION_FAILED")
    errors = [deliver(kafka, topic, partition, "a") for partition in led.values()]
    assert sorted(errors) == [[], [], ["TOPIC_AUTHORIZATION_FAILED"]]


def wrong(call: Callable[[], AbstractContextManager[None]], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_faults_of_brokers_that_there_are_not_are_refused(kafka: Kafka) -> None:
    faults = kafka.faults
    wrong(lambda: faults.broker_down(4), "there is no broker 4; there are 1, 2, 3")
    wrong(lambda: faults.paused(0), "there is no broker 0; there are 1, 2, 3")
    wrong(lambda: faults.paused("1"), "there is no broker '1'; there are 1, 2, 3")  # type: ignore[arg-type]
    wrong(lambda: faults.partitioned(1, 9), "there is no broker 9; there are 1, 2, 3")
    wrong(lambda: faults.partitioned(2, 2), "broker 2 cannot be cut off from itself; give two brokers")
    wrong(lambda: faults.broker_down(), "which broker? There are 1, 2, 3")
    wrong(lambda: faults.broker_down(1, leader_of="t-0"), "give a broker, or leader_of, but not both")
    wrong(lambda: faults.broker_down(leader_of="t-0"), "no broker leads partition 0 of topic 't'")
    wrong(lambda: faults.broker_down(leader_of="t"), "no broker leads partition 0 of topic 't'")
    wrong(lambda: faults.broker_down(leader_of=("t", 7)), "no broker leads partition 7 of topic 't'")


def test_a_leader_is_named_by_topic_and_partition_in_three_ways(kafka: Kafka, cluster: Cluster) -> None:
    topic, led = spread(kafka)
    by_partition = {partition: broker for broker, partition in led.items()}
    for partition, broker in by_partition.items():
        assert cluster.leader_of((topic, partition)) == cluster.leader_of(f"{topic}-{partition}") == broker
    assert cluster.leader_of(topic) == by_partition[0]
    create(kafka, "numbered-7")  # reads like partition 7 of `numbered`
    assert cluster.leader_of("numbered-7") == cluster.leader_of(("numbered-7", 0)) is not None


def test_the_clock_of_several_brokers_cannot_be_moved(kafka: Kafka) -> None:
    with pytest.raises(ValueError, match="the clock of several brokers cannot be moved"):
        kafka.clock.advance(seconds=1)


def test_one_broker_can_be_down_and_paused_but_not_partitioned() -> None:
    one = KafkaServer.embedded({})
    try:
        kafka = Kafka(one)
        topic = kafka.topic()
        wrong(
            lambda: kafka.faults.partitioned(1, 2),
            "one broker alone cannot be partitioned; use @pytest.mark.kafka(brokers=3)",
        )
        wrong(lambda: kafka.faults.paused(2), "there is no broker 2; the only one is 1")
        with kafka.faults.paused():
            assert deliver(kafka, topic, 0, "lost", timeout_s=0.3) == ["_MSG_TIMED_OUT"]
        with kafka.faults.broker_down(1):
            assert deliver(kafka, topic, 0, "lost", timeout_s=0.3) == ["_MSG_TIMED_OUT"]
        assert deliver(kafka, topic, 0, "after") == []
    finally:
        one.close()


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "3"])
def test_a_cluster_has_a_whole_number_of_brokers(count: Any) -> None:
    with pytest.raises(ValueError, match="give a whole number of at least 1"):
        Cluster(count)


def test_a_controller_that_lost_its_quorum_does_not_keep_a_cluster_from_its_end() -> None:
    with Cluster(3) as cluster:
        active = cluster.controller_id()
        for broker_id, broker in cluster.brokers.items():
            if broker_id != active:
                broker.stop()
        began = time.monotonic()
    assert time.monotonic() - began < DEADLINE_S / 2
    assert cluster.brokers == {}
