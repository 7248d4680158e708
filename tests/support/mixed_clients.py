"""A real client on a mixed cluster: what it wrote is acknowledged, what it reads is all there is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

QUIET = {"log_level": 0}


def create(
    servers: str, topic: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str] | None = None
) -> None:
    """With these replicas of each partition. Answered when this returns."""
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    new = NewTopic(
        topic,
        num_partitions=len(replicas),
        replica_assignment=[list(row) for row in replicas],
        config=dict(configs or {}),
    )
    admin.create_topics([new], request_timeout=30)[topic].result(60)


def produce(servers: str, topic: str, values: Iterable[bytes], *, partition: int = -1) -> None:
    """To all in-sync replicas, with a producer id that comes from the active controller."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET})
    errors = []
    for value in values:
        producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: error and errors.append(error)
        )
    assert producer.flush(60) == 0
    assert not errors, errors


def transact(
    servers: str, name: str, places: Iterable[tuple[str, int]], value: bytes, *, commits: bool
) -> None:
    """One record to each place, in one transaction."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name, **QUIET})
    producer.init_transactions(60)
    producer.begin_transaction()
    for topic, partition in places:
        producer.produce(topic, value, partition=partition)
    if commits:
        producer.commit_transaction(60)
    else:
        assert producer.flush(60) == 0
        producer.abort_transaction(60)


def _messages(consumer: Consumer, count: int) -> Iterator[Message]:
    for _ in range(count):
        message = consumer.poll(60)
        assert message is not None and message.error() is None, message
        yield message


def read(servers: str, topic: str, partition: int, count: int) -> list[bytes]:
    """The first committed records of a partition."""
    config = {"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False, **QUIET}
    consumer = Consumer(config)
    consumer.assign([TopicPartition(topic, partition, 0)])
    values = [message.value() for message in _messages(consumer, count)]
    consumer.close()
    return values


def read_as_group(servers: str, group: str, topics: list[str], count: int) -> set[bytes]:
    """The next records of a group, which then are committed."""
    config = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", **QUIET}
    consumer = Consumer(config)
    consumer.subscribe(topics)
    values = {message.value() for message in _messages(consumer, count)}
    consumer.close()
    return values
