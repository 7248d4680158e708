"""Commit one transaction, abort another, and show what readers see of both.

Client: confluent-kafka, which most Python users of Kafka have.
"""

import argparse

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition


def write(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-transfers"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, key="ada", value="-10", partition=0)
    producer.produce(topic, key="bob", value="+10", partition=0)
    producer.commit_transaction(30)
    print("committed a transfer from ada to bob")

    producer.begin_transaction()
    producer.produce(topic, key="ada", value="-99", partition=0)
    assert producer.flush(30) == 0, "the broker did not acknowledge all records in time"
    producer.abort_transaction(30)
    print("aborted a transfer that had only its first half")


def read(bootstrap: str, topic: str, isolation_level: str) -> list[str]:
    """All records up to the end of the partition."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": isolation_level}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None, "no answer within 30 s"
        error = message.error()
        if error is None:
            found.append(f"{text(message.key())} {text(message.value())}")
        elif error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return found
        else:
            raise SystemExit(str(error))


def text(data: bytes | None) -> str:
    return (data or b"").decode()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-b", "--bootstrap", default="localhost:9092")
    options.add_argument("--topic", default="transfers")
    given = options.parse_args()
    write(given.bootstrap, given.topic)
    for level in ("read_committed", "read_uncommitted"):
        print(f"{level}: {', '.join(read(given.bootstrap, given.topic, level))}")
