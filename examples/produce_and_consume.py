"""Produce three orders, then consume them as a member of a group that commits its offsets.

Client: confluent-kafka, which most Python users of Kafka have. Run it twice: the group continues where it
stopped.
"""

import argparse

from confluent_kafka import Consumer, KafkaError, Message, Producer

ORDERS = [("ada", "42"), ("bob", "7"), ("ada", "8")]


def report(error: KafkaError | None, message: Message) -> None:
    assert error is None, error
    print(f"produced {text(message.key())} to {message.topic()}-{message.partition()}")


def text(data: bytes | None) -> str:
    return (data or b"").decode()


def produce(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for customer, amount in ORDERS:
        producer.produce(topic, key=customer, value=amount, on_delivery=report)
    assert producer.flush(30) == 0, "the broker did not acknowledge all records in time"


def consume(bootstrap: str, topic: str, group: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    for _ in ORDERS:
        message = consumer.poll(30)
        assert message is not None, "no record within 30 s"
        assert message.error() is None, message.error()
        print(f"consumed {text(message.key())} = {text(message.value())}")
    consumer.commit(asynchronous=False)
    consumer.close()
    print(f"group {group} has committed its offsets")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-b", "--bootstrap", default="localhost:9092")
    options.add_argument("--topic", default="orders")
    options.add_argument("--group", default="billing")
    given = options.parse_args()
    produce(given.bootstrap, given.topic)
    consume(given.bootstrap, given.topic, given.group)
