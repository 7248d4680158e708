"""The transactional producers of the Python clients, and what goes with them, behind one small face."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka

from tests.compat.clients import TIMEOUT_S
from tests.support.raw import Connection

LIST_OFFSETS, LATEST = 2, -1


class Fenced(Exception):
    """Another producer has taken the transactional id."""


REFUSED = (Fenced, confluent_kafka.KafkaException, kafka.errors.KafkaError, aiokafka.errors.KafkaError)


class Taken(NamedTuple):
    """A record that a group's consumer got."""

    partition: int
    offset: int
    value: bytes


class Consumer(Protocol):
    def poll(self) -> list[Taken]:
        """What there is, or nothing within a second."""
        ...

    def rewind(self) -> None:
        """Go back to what is committed, or the beginning."""
        ...

    def close(self) -> None: ...


class Producer(Protocol):
    """Made ready for its first transaction. What fences it raises Fenced."""

    def begin(self) -> None: ...
    def send(self, topic: str, value: bytes) -> None: ...
    def send_offsets(self, consumer: Any, topic: str, offsets: dict[int, int]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class TransactionalClient(Protocol):
    name: str

    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000) -> Producer: ...
    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer: ...
    def read(self, bootstrap: str, topic: str, *, committed: bool) -> list[bytes]:
        """All that partition 0 shows to an isolation level."""
        ...


def end_offset(bootstrap: str, topic: str, *, committed: bool) -> int:
    row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": LATEST}
    values = {
        "replica_id": -1,
        "isolation_level": int(committed),
        "topics": [{"name": topic, "partitions": [row]}],
    }
    with Connection(bootstrap) as connection:
        offset: int = connection.call(LIST_OFFSETS, 7, values).topics[0].partitions[0].offset
        return offset


def isolation(committed: bool) -> str:
    return "read_committed" if committed else "read_uncommitted"


# --- confluent-kafka ------------------------------------------------------------------------------------


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 1,
            }
        )
        self._call(self._producer.init_transactions, TIMEOUT_S)

    def _call(self, function: Any, *args: Any) -> None:
        try:
            function(*args)
        except confluent_kafka.KafkaException as e:
            if e.args[0].code() == confluent_kafka.KafkaError._FENCED:
                raise Fenced from e
            raise

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes) -> None:
        self._call(lambda: self._producer.produce(topic, value, partition=0))
        self._producer.flush(TIMEOUT_S)

    def send_offsets(self, consumer: Any, topic: str, offsets: dict[int, int]) -> None:
        rows = [confluent_kafka.TopicPartition(topic, p, o) for p, o in offsets.items()]
        group = consumer.consumer.consumer_group_metadata()
        self._call(self._producer.send_offsets_to_transaction, rows, group, TIMEOUT_S)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, TIMEOUT_S)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction, TIMEOUT_S)

    def close(self) -> None:
        del self._producer


class ConfluentConsumer:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self.consumer.subscribe([topic])

    def poll(self) -> list[Taken]:
        found = self.consumer.consume(5, 1)
        assert all(m.error() is None for m in found), [m.error() for m in found]
        return [Taken(m.partition(), m.offset(), m.value()) for m in found]

    def rewind(self) -> None:
        for tp in self.consumer.committed(self.consumer.assignment(), TIMEOUT_S):
            tp.offset = max(tp.offset, 0)
            self.consumer.seek(tp)

    def close(self) -> None:
        self.consumer.close()


class Confluent:
    name = "confluent-kafka"

    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000) -> Producer:
        return ConfluentProducer(bootstrap, transactional_id, timeout_ms)

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        return ConfluentConsumer(bootstrap, group, topic)

    def read(self, bootstrap: str, topic: str, *, committed: bool) -> list[bytes]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation(committed),
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        out: list[bytes] = []
        try:
            while True:
                message = consumer.poll(TIMEOUT_S)
                assert message is not None, "neither a record nor the end"
                if message.error() is not None:
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, (
                        message.error()
                    )
                    return out
                out.append(message.value())
        finally:
            consumer.close()


# --- kafka-python ---------------------------------------------------------------------------------------


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        self._call(self._producer.init_transactions)

    def _call(self, function: Any, *args: Any) -> Any:
        try:
            return function(*args)
        except (kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError) as e:
            raise Fenced from e
        except kafka.errors.KafkaError as e:
            if isinstance(
                e.__cause__, kafka.errors.ProducerFencedError | kafka.errors.InvalidProducerEpochError
            ):
                raise Fenced from e
            raise

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes) -> None:
        self._call(lambda: self._producer.send(topic, value, partition=0).get(TIMEOUT_S))

    def send_offsets(self, consumer: Any, topic: str, offsets: dict[int, int]) -> None:
        rows = {
            kafka.TopicPartition(topic, p): kafka.structs.OffsetAndMetadata(o, "", -1)
            for p, o in offsets.items()
        }
        self._call(self._producer.send_offsets_to_transaction, rows, consumer.consumer.group_metadata())

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=1)


class KafkaPythonConsumer:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )

    def poll(self) -> list[Taken]:
        batches = self.consumer.poll(1000, max_records=5).values()
        return [Taken(r.partition, r.offset, r.value) for batch in batches for r in batch]

    def rewind(self) -> None:
        for tp in self.consumer.assignment():
            self.consumer.seek(tp, self.consumer.committed(tp) or 0)

    def close(self) -> None:
        self.consumer.close()


class KafkaPython:
    name = "kafka-python"

    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000) -> Producer:
        return KafkaPythonProducer(bootstrap, transactional_id, timeout_ms)

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        return KafkaPythonConsumer(bootstrap, group, topic)

    def read(self, bootstrap: str, topic: str, *, committed: bool) -> list[bytes]:
        end = end_offset(bootstrap, topic, committed=committed)
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level=isolation(committed)
        )
        tp = kafka.TopicPartition(topic, 0)
        out: list[bytes] = []
        try:
            consumer.assign([tp])
            consumer.seek(tp, 0)
            deadline = time.monotonic() + TIMEOUT_S
            while consumer.position(tp) < end:
                assert time.monotonic() < deadline, f"at {consumer.position(tp)} of {end}"
                out += [r.value for batch in consumer.poll(200).values() for r in batch]
            return out
        finally:
            consumer.close()


# --- aiokafka -------------------------------------------------------------------------------------------


class Loop:
    """An event loop that runs in a thread of its own, so that a client's chores go on between calls."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_S)
        except (aiokafka.errors.ProducerFenced, aiokafka.errors.InvalidProducerEpoch) as e:
            raise Fenced from e

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()


class AiokafkaProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = Loop()

        async def start() -> Any:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        self._producer = self._loop.call(start())

    def begin(self) -> None:
        self._loop.call(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes) -> None:
        self._loop.call(self._producer.send_and_wait(topic, value, partition=0))

    def send_offsets(self, consumer: Any, topic: str, offsets: dict[int, int]) -> None:
        rows = {aiokafka.TopicPartition(topic, p): o for p, o in offsets.items()}
        self._loop.call(self._producer.send_offsets_to_transaction(rows, consumer.group))

    def commit(self) -> None:
        self._loop.call(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.call(self._producer.abort_transaction())

    def close(self) -> None:
        try:
            self._loop.call(self._producer.stop())
        except Fenced:
            pass
        finally:
            self._loop.close()


class AiokafkaConsumer:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._loop = Loop()
        self.group = group

        async def start() -> Any:
            consumer = aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            )
            await consumer.start()
            return consumer

        self._consumer = self._loop.call(start())

    def poll(self) -> list[Taken]:
        batches = self._loop.call(self._consumer.getmany(timeout_ms=1000, max_records=5)).values()
        return [Taken(r.partition, r.offset, r.value) for batch in batches for r in batch]

    def rewind(self) -> None:
        for tp in self._consumer.assignment():
            offset = self._loop.call(self._consumer.committed(tp)) or 0
            self._consumer.seek(tp, offset)

    def close(self) -> None:
        self._loop.call(self._consumer.stop())
        self._loop.close()


class Aiokafka:
    name = "aiokafka"

    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000) -> Producer:
        return AiokafkaProducer(bootstrap, transactional_id, timeout_ms)

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        return AiokafkaConsumer(bootstrap, group, topic)

    def read(self, bootstrap: str, topic: str, *, committed: bool) -> list[bytes]:
        end = end_offset(bootstrap, topic, committed=committed)

        async def run() -> list[bytes]:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level=isolation(committed)
            )
            await consumer.start()
            try:
                tp = aiokafka.TopicPartition(topic, 0)
                consumer.assign([tp])
                consumer.seek(tp, 0)
                out: list[bytes] = []
                while await consumer.position(tp) < end:
                    batches = await consumer.getmany(timeout_ms=200)
                    out += [r.value for batch in batches.values() for r in batch]
                return out
            finally:
                await consumer.stop()

        return asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


TRANSACTIONAL: tuple[TransactionalClient, ...] = (Confluent(), KafkaPython(), Aiokafka())
