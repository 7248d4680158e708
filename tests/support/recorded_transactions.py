"""A transactional producer whose every record is recorded with the outcome of its transaction."""

from collections.abc import Callable, Sequence
from itertools import count

from confluent_kafka import KafkaException, Producer

from odradek.core.types import TopicPartition
from odradek.sim.checkers.operations import Operations, Send
from tests.support.recorded import PATIENCE_S, QUIET, Worker

SIZE = 4


class RecordedTransactions(Worker):
    """One transaction after another, over all partitions; every third one is aborted. An outcome that the
    client was not sure of stays unknown."""

    def __init__(
        self, operations: Operations, name: str, servers: str, tps: Sequence[TopicPartition]
    ) -> None:
        super().__init__(name)
        self.committed = self.aborted = self.unsure = 0
        self._operations, self._servers, self._tps = operations, servers, tps
        self._lives = count()
        self._offsets: dict[bytes, int] = {}

    @property
    def outcomes(self) -> str:
        return (
            f"transactions: {self.committed} committed, {self.aborted} aborted, {self.unsure} with an error"
        )

    def work(self) -> None:
        producer = self._new_producer()
        for number in count():
            if self.is_over.wait(0.02):
                break
            sends: list[Send] = []
            try:
                self._write(producer, number, sends)
                is_committed = number % 3 != 2
                self._retrying(producer.commit_transaction if is_committed else producer.abort_transaction)
            except KafkaException as e:
                self.unsure += 1
                producer = self._after(producer, e, sends)
                continue
            self._end(sends, is_committed)

    def _end(self, sends: Sequence[Send], is_committed: bool) -> None:
        for send in sends:
            if is_committed:
                send.acknowledged(self._offsets[send.value])
            else:
                send.failed()
        self.committed += is_committed
        self.aborted += not is_committed

    def _new_producer(self) -> Producer:
        producer = Producer({"bootstrap.servers": self._servers, "transactional.id": self.name, **QUIET})
        self._life = f"{self.name}.{next(self._lives)}"
        self._retrying(producer.init_transactions)
        return producer

    def _write(self, producer: Producer, number: int, sends: list[Send]) -> None:
        producer.begin_transaction()
        for i in range(SIZE):
            value = f"{self._life}-{number}-{i}".encode()
            tp = self._tps[(number + i) % len(self._tps)]
            sends.append(self._operations.send(self._life, tp, value))

            def delivered(error: object, message: object, value: bytes = value) -> None:
                if error is None:
                    self._offsets[value] = message.offset()  # type: ignore[attr-defined]

            producer.produce(tp.topic, value, partition=tp.partition, on_delivery=delivered)

    def _retrying(self, call: Callable[[float], object]) -> None:
        for _ in range(20):
            try:
                call(PATIENCE_S)
                return
            except KafkaException as e:
                if not e.args[0].retriable():
                    raise
        raise AssertionError(f"{self.name}: {call} does not come to an end")

    def _after(self, producer: Producer, e: KafkaException, sends: Sequence[Send]) -> Producer:
        """An abort that is answered is an outcome. After anything else a new producer fences the old one, and
        the outcome stays unknown."""
        if e.args[0].txn_requires_abort():
            try:
                self._retrying(producer.abort_transaction)
            except KafkaException:
                return self._new_producer()
            self._end(sends, is_committed=False)
            return producer
        return self._new_producer()
