"""Records at a steady rate into one topic, until it is killed."""

import sys
import time

from confluent_kafka import Producer

RECORDS_S = 1000
TICK_S = 0.01


def main(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    value = b"x" * 100
    began, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * RECORDS_S)
        for number in range(sent, due):
            producer.produce(topic, value, str(number))
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(TICK_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
