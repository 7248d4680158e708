"""A sample application: sums the orders of each customer since it was started, and publishes the sums.

Client: confluent-kafka, which most Python users of Kafka have. Its tests are in test_orders.py.
"""

import argparse
from collections import Counter

from confluent_kafka import Consumer, Producer


class Totals:
    """Reads `orders` (customer, amount), and writes the new total of the customer to `totals`."""

    def __init__(self, bootstrap: str, orders: str, totals: str, group: str) -> None:
        self.sums: Counter[str] = Counter()
        self.refused: list[str] = []
        self._totals = totals
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**settings, "enable.auto.commit": False})
        self._consumer.subscribe([orders])
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})

    def handle(self, count: int, timeout_s: float = 10) -> None:
        """The next orders, so many; their offsets are committed when their totals are acknowledged."""
        for _ in range(count):
            message = self._consumer.poll(timeout_s)
            assert message is not None, f"no order within {timeout_s} s"
            assert message.error() is None, message.error()
            self._add(message.key() or b"", message.value() or b"")
        assert self._producer.flush(timeout_s) == 0, "totals are not acknowledged"
        self._consumer.commit(asynchronous=False)

    def _add(self, key: bytes, value: bytes) -> None:
        customer, amount = key.decode(), value.decode()
        if not amount.isdecimal():
            self.refused.append(amount)
            return
        self.sums[customer] += int(amount)
        self._producer.produce(self._totals, key=customer, value=str(self.sums[customer]))

    def close(self) -> None:
        self._consumer.close()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-b", "--bootstrap", default="localhost:9092")
    app = Totals(options.parse_args().bootstrap, "orders", "totals", "totals")
    try:
        while True:
            app.handle(1, timeout_s=3600)
            print(dict(app.sums))
    except KeyboardInterrupt:
        app.close()
