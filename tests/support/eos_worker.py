"""A consume-transform-produce loop of a real client, in a process of its own that may be killed at any time.

`python -m tests.support.eos_worker BOOTSTRAP TRANSACTIONAL_ID GROUP SOURCE TARGET`. It ends by itself only if
its producer cannot continue. The test then starts it again.
"""

import sys
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

BATCH = 50
TIMEOUT_S = 30.0


def run(bootstrap: str, transactional_id: str, group: str, source: str, target: str) -> int:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 200,
        }
    )
    _again(lambda: producer.init_transactions(TIMEOUT_S))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 500,
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.subscribe([source])
    while True:
        messages = _good(consumer.consume(BATCH, 0.5))
        if messages:
            try:
                _transact(producer, consumer, messages, target)
            except KafkaException as e:
                error = e.args[0]
                if error.fatal() or not _abort(producer, error):
                    return 1
                _rewind(consumer)


def _transact(producer: Producer, consumer: Consumer, messages: list[Message], target: str) -> None:
    producer.begin_transaction()
    for message in messages:
        producer.produce(target, key=message.key(), value=b"copy of " + (message.value() or b""))
        producer.poll(0)
    following: dict[tuple[str, int], int] = {}
    for message in messages:
        following[message.topic(), message.partition()] = message.offset() + 1
    offsets = [TopicPartition(topic, index, offset) for (topic, index), offset in following.items()]
    _again(
        lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
    )
    _again(lambda: producer.commit_transaction(TIMEOUT_S))


def _again(step: Callable[[], object]) -> None:
    while True:
        try:
            step()
            return
        except KafkaException as e:
            if not e.args[0].retriable():
                raise


def _abort(producer: Producer, error: KafkaError) -> bool:
    """Whether the transaction is aborted and the producer goes on."""
    if not (error.txn_requires_abort() or error.code() == KafkaError._STATE):
        return False
    try:
        _again(lambda: producer.abort_transaction(TIMEOUT_S))
    except KafkaException:
        return False
    return True


def _rewind(consumer: Consumer) -> None:
    """Back to what the group has committed."""
    assigned = consumer.assignment()
    while assigned:
        try:
            for found in consumer.committed(assigned, TIMEOUT_S):
                found.offset = max(found.offset, 0)
                consumer.seek(found)
            return
        except KafkaException as e:
            if e.args[0].code() not in (KafkaError._TIMED_OUT, KafkaError._WAIT_COORD, KafkaError._TRANSPORT):
                consumer.assign([])
                return


def _good(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message.error() is None]


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
