"""The Python clients that people have, behind one small face: send records, read them back.

Each is used as its own documentation shows. What only one of them can do is tested with it directly.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_S = 30


class Sent(NamedTuple):
    """A record to produce."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


class Read(NamedTuple):
    """A record as a consumer saw it."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    log_append_time: bool


class Refused(Exception):
    """The broker refused a record; `code` is Kafka's error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Client(Protocol):
    name: str
    null_headers: bool  # whether it can send a header without a value
    unknown_codes: frozenset[int]  # error codes that it reports as -1

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send to partition 0 and wait for every acknowledgement; the offsets (unknown with acks=0)."""
        ...

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Read]:
        """Read `count` records of partition 0 by manual assignment."""
        ...


class Confluent:
    name = "confluent-kafka"
    null_headers = True
    unknown_codes = frozenset[int]()

    def produce(self, bootstrap, topic, records, *, codec="none", acks="all", idempotent=False):  # type: ignore[no-untyped-def]
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
                "message.max.bytes": 20_000_000,
                "message.timeout.ms": TIMEOUT_S * 1000,
            }
        )
        offsets: list[int] = []
        errors: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error.code())
            else:
                offsets.append(message.offset())

        for r in records:
            stamp = {} if r.timestamp_ms is None else {"timestamp": r.timestamp_ms}
            producer.produce(
                topic,
                value=r.value,
                key=r.key,
                headers=list(r.headers),
                partition=0,
                on_delivery=delivered,
                **stamp,
            )
        assert producer.flush(TIMEOUT_S) == 0
        if errors:
            raise Refused(errors[0])
        return offsets

    def consume(self, bootstrap, topic, count, *, offset=0):  # type: ignore[no-untyped-def]
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
        try:
            out: list[Read] = []
            deadline = time.monotonic() + TIMEOUT_S
            while len(out) < count and time.monotonic() < deadline:
                for m in consumer.consume(count - len(out), 1):
                    assert m.error() is None, m.error()
                    kind, stamp = m.timestamp()
                    headers = tuple(m.headers() or ())
                    out.append(
                        Read(
                            m.offset(),
                            m.key(),
                            m.value(),
                            headers,
                            stamp,
                            kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME,
                        )
                    )
            return out
        finally:
            consumer.close()


class KafkaPython:
    name = "kafka-python"
    null_headers = False
    unknown_codes = frozenset[int]()

    def produce(self, bootstrap, topic, records, *, codec="none", acks="all", idempotent=False):  # type: ignore[no-untyped-def]
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=20,
            max_request_size=20_000_000,
            delivery_timeout_ms=TIMEOUT_S * 1000,
            request_timeout_ms=TIMEOUT_S * 1000 - 1000,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=r.value,
                    key=r.key,
                    headers=list(r.headers),
                    partition=0,
                    timestamp_ms=r.timestamp_ms,
                )
                for r in records
            ]
            return [f.get(TIMEOUT_S).offset for f in futures]
        except kafka.errors.BrokerResponseError as e:
            raise Refused(e.errno) from e
        finally:
            producer.close(timeout=5)

    def consume(self, bootstrap, topic, count, *, offset=0):  # type: ignore[no-untyped-def]
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        try:
            tp = kafka.TopicPartition(topic, 0)
            consumer.assign([tp])
            consumer.seek(tp, offset)
            out: list[Read] = []
            deadline = time.monotonic() + TIMEOUT_S
            while len(out) < count and time.monotonic() < deadline:
                for batch in consumer.poll(1000, max_records=count - len(out)).values():
                    out += [
                        Read(r.offset, r.key, r.value, tuple(r.headers), r.timestamp, r.timestamp_type == 1)
                        for r in batch
                    ]
            return out
        finally:
            consumer.close()


class Aiokafka:
    name = "aiokafka"
    null_headers = True
    unknown_codes = frozenset({87})

    def produce(self, bootstrap, topic, records, *, codec="none", acks="all", idempotent=False):  # type: ignore[no-untyped-def]
        async def run() -> list[int]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=20,
                max_batch_size=20_000_000,
                max_request_size=20_000_000,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=r.value,
                        key=r.key,
                        headers=list(r.headers),
                        partition=0,
                        timestamp_ms=r.timestamp_ms,
                    )
                    for r in records
                ]
                done = [await asyncio.wait_for(f, TIMEOUT_S) for f in futures]
                return [-1 if d is None else d.offset for d in done]
            except aiokafka.errors.BrokerResponseError as e:
                raise Refused(e.errno) from e
            finally:
                await producer.stop()

        return asyncio.run(run())

    def consume(self, bootstrap, topic, count, *, offset=0):  # type: ignore[no-untyped-def]
        async def run() -> list[Read]:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
            await consumer.start()
            try:
                tp = aiokafka.TopicPartition(topic, 0)
                consumer.assign([tp])
                consumer.seek(tp, offset)
                out: list[Read] = []
                while len(out) < count:
                    r = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
                    out.append(
                        Read(r.offset, r.key, r.value, tuple(r.headers), r.timestamp, r.timestamp_type == 1)
                    )
                return out
            finally:
                await consumer.stop()

        return asyncio.run(run())


CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), Aiokafka())
