"""Sends every produce case to a live Apache Kafka broker and writes down what it answers and stores.

    python -m tests.unit.records.ask_apache 127.0.0.1:9092 DATA_DIR > tests/unit/records/apache_answers.json

DATA_DIR is the broker's log directory: what was accepted is read from its segments.
"""

import json
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from odradek.records.batch import iter_batches
from tests.support.topics import create_topic
from tests.unit.records.produce_cases import TOPICS, Case, all_cases


def encode_produce(topic: str, partition: int, case: Case) -> bytes:
    """A Produce request of version 3 to 8 for one partition, acks=all."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    records = (
        b"\xff\xff\xff\xff" if case.records is None else struct.pack(">i", len(case.records)) + case.records
    )
    body = struct.pack(">hhi", 0, case.version, 1) + text("ask")
    body += struct.pack(">h", -1) + struct.pack(">hi", -1, 30000)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, partition) + records
    return struct.pack(">i", len(body)) + body


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, form: str) -> Any:
        values = struct.unpack_from(">" + form, self.data, self.position)
        self.position += struct.calcsize(">" + form)
        return values[0]

    def text(self) -> str | None:
        length = self.take("h")
        if length < 0:
            return None
        self.position += length
        return self.data[self.position - length : self.position].decode()


def decode_produce(data: bytes, version: int) -> dict[str, Any]:
    r = Reader(data)
    r.take("i")
    assert r.take("i") == 1
    r.text()
    assert r.take("i") == 1
    r.take("i")
    answer: dict[str, Any] = {"error_code": r.take("h"), "base_offset": r.take("q")}
    answer["log_append_time"] = r.take("q") != -1
    if version >= 5:
        r.take("q")
    if version >= 8:
        answer["record_errors"] = [[r.take("i"), r.text()] for _ in range(r.take("i"))]
        answer["error_message"] = r.text()
    return answer


def ask(address: tuple[str, int], topic: str, partition: int, case: Case) -> dict[str, Any]:
    with socket.create_connection(address, timeout=8) as sock:
        sock.sendall(encode_produce(topic, partition, case))
        stream = sock.makefile("rb")
        try:
            head = stream.read(4)
        except TimeoutError:
            return {"error_code": None, "answer": "none within 8 s"}
        if len(head) < 4:
            return {"error_code": None, "answer": "connection closed"}
        return decode_produce(stream.read(int.from_bytes(head, "big")), case.version)


def stored(directory: Path, topic: str, partition: int) -> list[str]:
    segment = (directory / f"{topic}-{partition}" / "00000000000000000000.log").read_bytes()
    return [segment[b.position : b.position + b.size].hex() for b in iter_batches(segment)]


def place(cases: dict[str, Case]) -> tuple[dict[str, int], dict[str, int]]:
    """A partition of its own for every case: (partition by case, partitions by topic)."""
    partitions: dict[str, int] = {}
    placed = {}
    for name, case in cases.items():
        placed[name] = partitions.get(case.topic, 0)
        partitions[case.topic] = placed[name] + 1
    return placed, partitions


def ask_all(bootstrap: str, prefix: str, cases: dict[str, Case]) -> dict[str, dict[str, Any]]:
    """What a broker answers to every case, each in an empty partition of a topic of the kind it names."""
    host, _, port = bootstrap.rpartition(":")
    placed, partitions = place(cases)
    for topic, count in partitions.items():
        create_topic(bootstrap, prefix + topic, count, TOPICS[topic])
    return {
        name: ask((host, int(port)), prefix + case.topic, placed[name], case) for name, case in cases.items()
    }


def main() -> None:
    bootstrap, directory = sys.argv[1], Path(sys.argv[2])
    now_ms = time.time_ns() // 1_000_000
    prefix = f"ask-{now_ms}-"
    cases = all_cases(now_ms)
    placed, _ = place(cases)
    rows = {}
    for name, answer in ask_all(bootstrap, prefix, cases).items():
        case = cases[name]
        sent = None if case.records is None else case.records.hex()
        rows[name] = {"topic": case.topic, "version": case.version, "sent": sent, **answer}
        if answer["error_code"] == 0:
            rows[name]["stored"] = stored(directory, prefix + case.topic, placed[name])
    print(json.dumps({"now_ms": now_ms, "answers": rows}, indent=1).replace(prefix, ""))


if __name__ == "__main__":
    main()
