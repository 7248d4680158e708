"""Apache Kafka's verifiable producer and consumer, and their lines as operations for the judges; its replica
verification."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.core.types import TopicPartition
from odradek.sim.checkers.operations import Operations, Polled, Run
from tests.support import peer


class Running:
    """A tool in a JVM of its own, which does not end by itself. What it prints goes to a file."""

    def __init__(self, folder: Path, tool: str, *arguments: object) -> None:
        self._path = folder / f"{tool}.txt"
        with self._path.open("wb") as out:
            self.process = subprocess.Popen(
                [str(peer.PEER), "tool", tool, *map(str, arguments)],
                stdout=out,
                stderr=out,
                env=peer.quick(),
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self._path.read_text(errors="replace")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Verifiable(Running):
    def lines(self) -> Iterator[dict[str, Any]]:
        for line in self.text.splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)

    def count(self, name: str) -> int:
        return sum(line["name"] == name for line in self.lines())

    def end(self) -> None:
        """It waits for what it has sent, and commits what it has read."""
        self.process.terminate()
        self.process.wait(60)
        assert self.count("shutdown_complete") == 1, self.text[-3000:]


def operations_of(producer: Verifiable, consumer: Verifiable) -> Operations:
    """The consumer must be --verbose. Values are numbers, in the order of sending."""
    operations = Operations()
    sent = [line for line in producer.lines() if line["name"] == "producer_send_success"]
    for line in sorted(sent, key=lambda line: int(line["value"])):
        tp = TopicPartition(line["topic"], line["partition"])
        offset = line["offset"]
        operations.send("producer", tp, line["value"].encode()).acknowledged(offset if offset >= 0 else None)
    runs: dict[TopicPartition, Run] = {}
    for line in consumer.lines():
        if line["name"] == "partitions_assigned":
            for p in line["partitions"]:
                tp = TopicPartition(p["topic"], p["partition"])
                runs[tp] = operations.assign("consumer", tp)
        elif line["name"] == "record_data":
            tp = TopicPartition(line["topic"], line["partition"])
            runs[tp].polled.append(Polled(line["offset"], line["value"].encode()))
    return operations
