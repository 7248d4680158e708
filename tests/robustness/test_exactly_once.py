"""Consume, transform and produce with a real client, while clients and node are killed: each input once.

`make soak-eos` strikes for ten minutes; here it is less than one, in which each is killed several times.
"""

import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.runtime.ports import free_port
from tests.support.node import NodeProcess

STRIKING_S = float(os.environ.get("ODRADEK_SOAK_SECONDS", "25"))
pytestmark = pytest.mark.timeout(3 * STRIKING_S + 180)
PARTITIONS = 4
WORKERS = 2
GROUP, SOURCE, TARGET = "pipeline", "source", "target"
LOOK_EVERY_S = 1 + STRIKING_S / 100
"""The more there is, the longer it takes to read all of it again."""
STUCK_S = 60.0
"""Without progress for so long after the last strike nothing more will come."""


class Pipeline:
    """A node on one port and directory, workers that are started again whenever they end, and an input."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self.node = NodeProcess(directory / "data", "--port", str(free_port()))
        self.bootstrap = self.node.bootstrap
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * WORKERS
        self._log = (directory / "workers.log").open("ab")
        self.starts = 0
        self.sent = 0
        self.acknowledged: collections.Counter[bytes] = collections.Counter()
        self._feeding = True
        self._feeder = threading.Thread(target=self._feed)

    def start(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (SOURCE, TARGET)]
        for created in admin.create_topics(topics).values():
            created.result(30)
        self.keep_workers()
        self._feeder.start()

    def _feed(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": 2_147_483_647,
                "reconnect.backoff.max.ms": 200,
            }
        )

        def delivered(error: KafkaError | None, message: object) -> None:
            if error is None:
                key = message.key()  # type: ignore[attr-defined]
                self.acknowledged[key] += 1

        while self._feeding:
            key = str(self.sent).encode()
            producer.produce(SOURCE, key=key, value=b"v" * 20, on_delivery=delivered)
            self.sent += 1
            producer.poll(0.002)
        producer.flush(60)

    def stop_feeding(self) -> None:
        self._feeding = False
        self._feeder.join()

    def keep_workers(self) -> None:
        for number, worker in enumerate(self._workers):
            if worker is None or worker.poll() is not None:
                self.starts += 1
                arguments = [self.bootstrap, f"worker-{number}", GROUP, SOURCE, TARGET]
                self._workers[number] = subprocess.Popen(
                    [sys.executable, "-m", "tests.support.eos_worker", *arguments],
                    stdout=self._log,
                    stderr=self._log,
                )

    def kill_worker(self, number: int) -> None:
        worker = self._workers[number]
        assert worker is not None
        worker.kill()
        worker.wait()

    def kill_node(self) -> None:
        self.node.kill()
        self.node.restart()

    def read(self, topic: str) -> collections.Counter[bytes]:
        """The keys of everything committed in a topic, and how often each is there."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"auditor-{time.monotonic_ns()}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([topic])
        found: collections.Counter[bytes] = collections.Counter()
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None, f"{topic} cannot be read to its end"
            error = message.error()
            if error is None:
                found[message.key()] += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
        consumer.close()
        return found

    def close(self) -> None:
        self._feeding = False
        if self._feeder.is_alive():
            self._feeder.join(60)
        for worker in self._workers:
            if worker is not None:
                worker.kill()
                worker.wait()
        self.node.stop()
        self._log.close()


def test_every_input_is_copied_exactly_once(tmp_path: pathlib.Path) -> None:
    rng = random.Random(4)
    pipeline = Pipeline(tmp_path)
    try:
        pipeline.start()
        deadline = time.monotonic() + STRIKING_S
        strikes = 0
        while time.monotonic() < deadline:
            time.sleep(rng.uniform(1, 4))
            if strikes % 2:
                pipeline.kill_node()
            else:
                pipeline.kill_worker(rng.randrange(WORKERS))
            strikes += 1
            pipeline.keep_workers()
        pipeline.stop_feeding()
        assert strikes >= 4
        wanted = pipeline.read(SOURCE)
        assert wanted == pipeline.acknowledged
        assert len(wanted) == pipeline.sent
        copied: collections.Counter[bytes] = collections.Counter()
        moved = time.monotonic()
        while len(copied) < len(wanted) and time.monotonic() < moved + STUCK_S:
            pipeline.keep_workers()
            time.sleep(LOOK_EVERY_S)
            before, copied = len(copied), pipeline.read(TARGET)
            if len(copied) > before:
                moved = time.monotonic()
        missing = wanted - copied
        repeated = copied - wanted
        print(f"{strikes} strikes, {pipeline.starts} starts of workers, {len(wanted)} inputs")
        assert not missing, f"{len(missing)} of {len(wanted)} inputs were not copied: {list(missing)[:5]}"
        assert not repeated, (
            f"{len(repeated)} of {len(wanted)} inputs were copied again: {list(repeated)[:5]}"
        )
    except BaseException:
        print((tmp_path / "workers.log").read_text()[-3000:])
        raise
    finally:
        pipeline.close()


@pytest.mark.parametrize("commit", [True, False])
def test_what_a_killed_client_left_open_is_never_visible(tmp_path: pathlib.Path, commit: bool) -> None:
    """The next owner of its transactional id aborts it, and is not kept waiting by it."""
    with_node = NodeProcess(tmp_path / "data")
    try:
        script = (
            "import sys, os, signal; from confluent_kafka import Producer;"
            "p = Producer({'bootstrap.servers': sys.argv[1], 'transactional.id': 'x'});"
            "p.init_transactions(30); p.begin_transaction();"
            "p.produce('t', b'left open'); p.flush(30); os.kill(os.getpid(), signal.SIGKILL)"
        )
        admin = AdminClient({"bootstrap.servers": with_node.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
        killed = subprocess.run([sys.executable, "-c", script, with_node.bootstrap], check=False)
        assert killed.returncode == -signal.SIGKILL
        successor = Producer({"bootstrap.servers": with_node.bootstrap, "transactional.id": "x"})
        successor.init_transactions(30)
        successor.begin_transaction()
        successor.produce("t", b"after it")
        if commit:
            successor.commit_transaction(30)
        else:
            successor.abort_transaction(30)
        consumer = Consumer(
            {
                "bootstrap.servers": with_node.bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        consumer.subscribe(["t"])
        values = []
        while (message := consumer.poll(30)) is not None and message.error() is None:
            values.append(message.value())
        consumer.close()
        assert message is not None
        assert message.error().code() == KafkaError._PARTITION_EOF
        assert values == ([b"after it"] if commit else [])
    finally:
        with_node.stop()
