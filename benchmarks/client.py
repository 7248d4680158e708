"""Loads made by a real client, confluent-kafka (librdkafka). One JSON line on stdout.

client.py produce BOOTSTRAP TOPIC COUNT                  100-byte records, acks=all, idempotent
client.py txn     BOOTSTRAP TOPIC RECORDS WARM_SECS SECS RUNS   transactions per second, one JSON line a run
client.py keyed   BOOTSTRAP TOPIC MB                     a compacted topic, ten records to a key, too young
client.py compact BOOTSTRAP TOPIC                        let its cleaning begin
client.py e2e     BOOTSTRAP TOPIC RATE SKIP_SECS SECS    producer -> consumer latency
"""

import json
import struct
import sys
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

RECORD_BYTES = 100


def quantiles_us(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    rank = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    found = {k: ordered[min(len(ordered) - 1, int(len(ordered) * q))] for k, q in rank.items()}
    return {"n": len(ordered), **{k: round(v * 1e6, 1) for k, v in found.items()}}


def produce(bootstrap: str, topic: str, count: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    value, records = b"x" * RECORD_BYTES, int(count)
    began = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(60):
        raise SystemExit("not all delivered")
    elapsed = time.perf_counter() - began
    print(json.dumps({"recs": records / elapsed, "bytes": records * RECORD_BYTES, "secs": elapsed}))


def txn(bootstrap: str, topic: str, records: str, warm_secs: str, secs: str, runs: str) -> None:
    """Commit transactions of so many records, one after the other."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "bench", "linger.ms": 0})
    producer.init_transactions(30)
    value = b"x" * RECORD_BYTES

    def commit_for(duration: float) -> list[float]:
        times: list[float] = []
        end = time.perf_counter() + duration
        while (began := time.perf_counter()) < end:
            producer.begin_transaction()
            for _ in range(int(records)):
                producer.produce(topic, value, partition=0)
            producer.commit_transaction(30)
            times.append(time.perf_counter() - began)
        return times

    commit_for(float(warm_secs))
    for _ in range(int(runs)):
        times = commit_for(float(secs))
        print(json.dumps({"tps": len(times) / sum(times), **quantiles_us(times)}), flush=True)


def keyed(bootstrap: str, topic: str, mb: str) -> None:
    """Fill a compacted topic of several segments that is not cleaned until `compact` is called."""
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": str(64 << 20),
        "min.cleanable.dirty.ratio": "0.0",
        "min.compaction.lag.ms": str((1 << 63) - 1),
    }
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=configs)])[topic].result(30)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "batch.size": 16_384,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    records = int(mb) * 1_000_000 // RECORD_BYTES
    keys, value = max(1, records // 10), b"x" * (RECORD_BYTES - 16)
    for i in range(records):
        while True:
            try:
                producer.produce(topic, value, key=b"%016d" % (i * 7919 % keys), partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(120):
        raise SystemExit("not all delivered")


def compact(bootstrap: str, topic: str) -> None:
    lag = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[lag])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def e2e(bootstrap: str, topic: str, rate: str, skip_secs: str, secs: str) -> None:
    per_second, skip = float(rate), float(skip_secs)
    total = int((skip + float(secs)) * per_second)
    seen: list[float] = []

    def consume() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "e2e",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        while len(seen) < total:
            message = consumer.poll(5)
            if message is None:
                break
            value = message.value()
            assert value is not None, message.error()
            seen.append(time.monotonic() - struct.unpack("d", value[:8])[0])
        consumer.close()

    consuming = threading.Thread(target=consume)
    consuming.start()
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    began = time.monotonic()
    for i in range(total):
        ahead = began + i / per_second - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        producer.produce(topic, struct.pack("d", time.monotonic()) + b"x" * (RECORD_BYTES - 8), partition=0)
        producer.poll(0)
    producer.flush(30)
    consuming.join()
    print(json.dumps(quantiles_us(seen[int(skip * per_second) :])))


if __name__ == "__main__":
    commands = {"produce": produce, "txn": txn, "keyed": keyed, "compact": compact, "e2e": e2e}
    commands[sys.argv[1]](*sys.argv[2:])
