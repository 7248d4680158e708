"""A node on a directory that Apache Kafka wrote: the same transactional ids, and the same committed records.

The last tests truncate the logs to a moment at which Apache might have crashed: one transaction is decided
but has no markers yet, and another one is open longer than its timeout.
"""

import json
import re
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.golden import loader
from tests.support.group import Member
from tests.support.node import NodeProcess, running
from tests.support.raw import Connection
from tests.support.transactions import wait_for_coordinators

DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
CONTROL, PRODUCER_ID = 0x20, slice(43, 51)
GOLD_1, CTP_1 = 6, 9  # their producer ids
KEEP_ALL = ("--set", "log.retention.ms=-1")
LOOK_OFTEN = ("--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=200")


def last_states() -> dict[str, dict[str, Any]]:
    """What Apache's dump-log says about each transactional id last."""
    found = {}
    for text in loader.files("dumps", "__transaction_state").values():
        for key, payload in re.findall(r"key: (\{.*?\}\}) payload: (\{.*\}\})", text.decode()):
            found[json.loads(key)["data"]["transactionalId"]] = json.loads(payload)["data"]
    return found


def described(connection: Connection, *names: str) -> dict[str, Any]:
    answer = connection.call(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": names})
    return {row.transactional_id: row for row in answer.transaction_states}


def consumed(bootstrap: str, topic: str, isolation: str) -> list[dict[str, Any]]:
    """All records of a topic as `expected.json` has them, but for headers and timestamps."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in partitions])
    rows, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(20)
        assert message is not None, "neither a record nor the end"
        if message.error() is None:
            rows.append(as_expected(message))
        else:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
            ended += 1
    consumer.close()
    return sorted(rows, key=place)


def as_expected(message: Any) -> dict[str, Any]:
    key, value = message.key(), message.value()
    shown: Any = None if value is None else value.decode("latin-1")
    if value is not None and len(value) >= 100:
        shown = {"len": len(value), "crc32": zlib.crc32(value)}
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "key": None if key is None else key.decode(),
        "value": shown,
    }


def place(row: dict[str, Any]) -> tuple[int, int]:
    return row["partition"], row["offset"]


def wanted(topic: str, isolation: str) -> list[dict[str, Any]]:
    fields = ("partition", "offset", "key", "value")
    rows = [{f: row[f] for f in fields} for row in loader.expected()["topics"][topic][isolation]]
    return sorted(rows, key=place)


@pytest.fixture(scope="module", params=["clean", "crashed"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with running(loader.unpack(request.param, tmp_path_factory.mktemp("golden")), *KEEP_ALL) as process:
        yield process


def test_every_transactional_id_is_as_apache_left_it(node: NodeProcess) -> None:
    left = last_states()
    assert left.keys() == {"gold-1", "gold-2", "gold-compact", "ctp-1"}
    with Connection(node.bootstrap) as connection:
        wait_for_coordinators(connection, "gold-1")
        listed = {
            row.transactional_id: (row.producer_id, row.transaction_state)
            for row in connection.call(LIST_TRANSACTIONS, 2, {"duration_filter": -1}).transaction_states
        }
        assert listed == {
            name: (txn["producerId"], STATES[txn["transactionStatus"]]) for name, txn in left.items()
        }
        for name, row in described(connection, *left).items():
            txn = left[name]
            assert row.producer_epoch == txn["producerEpoch"]
            assert row.transaction_start_time == txn["transactionStartTimestampMs"]
            assert row.transaction_timeout.total_seconds() * 1000 == txn["transactionTimeoutMs"]
            assert row.topics == ()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("topic", ["txn", "compacted", "ctp-out"])
def test_a_client_reads_what_it_read_from_apache(node: NodeProcess, topic: str, isolation: str) -> None:
    assert consumed(node.bootstrap, topic, isolation) == wanted(topic, isolation)


def test_offsets_that_a_transaction_committed_are_there(node: NodeProcess) -> None:
    with Member(node.bootstrap, "ctp") as member:
        assert member.committed("codec-lz4")[0] == 100


# --- cut back -------------------------------------------------------------------------------------------


def batches(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(position behind it, bytes) of every batch."""
    position = 0
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12])
        yield position + size, data[position : position + size]
        position += size


def cut(directory: Path, partition: str, is_last: Callable[[bytes], bool], *, keep: bool) -> None:
    """End a partition behind, or before, the first batch that is the last."""
    (segment,) = (directory / partition).glob("*.log")
    data = segment.read_bytes()
    end, batch = next((end, batch) for end, batch in batches(data) if is_last(batch))
    segment.write_bytes(data[: end if keep else end - len(batch)])
    for snapshot in (directory / partition).glob("*.snapshot"):
        snapshot.unlink()


def marker_of(producer_id: int, count: int = 1) -> Callable[[bytes], bool]:
    """Whether a batch is the `count`-th end of a transaction of a producer."""
    seen = [0]

    def is_it(batch: bytes) -> bool:
        if batch[22] & CONTROL and int.from_bytes(batch[PRODUCER_ID]) == producer_id:
            seen[0] += 1
        return seen[0] == count

    return is_it


def markers(data: bytes, producer_id: int) -> int:
    return sum(
        bool(b[22] & CONTROL) and int.from_bytes(b[PRODUCER_ID]) == producer_id for _, b in batches(data)
    )


@pytest.fixture
def cut_back(tmp_path: Path) -> Path:
    """As if Apache had crashed right after it decided the transaction of `ctp-1`."""
    directory = loader.unpack("crashed", tmp_path)
    seen: list[bytes] = []

    def decides(batch: bytes) -> bool:
        seen.extend([batch] if b"ctp-1" in batch else [])
        return len(seen) == 4  # Empty, Ongoing, Ongoing, PrepareCommit

    cut(directory, "__transaction_state-1", decides, keep=True)
    cut(directory, "ctp-out-0", marker_of(CTP_1), keep=False)
    cut(directory, "__consumer_offsets-0", marker_of(CTP_1), keep=False)
    (segment,) = (directory / "txn-0").glob("*.log")
    cut(directory, "txn-0", marker_of(GOLD_1, markers(segment.read_bytes(), GOLD_1)), keep=False)
    return directory


def wait_for(connection: Connection, name: str, state: str, timeout_s: float = 20) -> Any:
    deadline = time.monotonic() + timeout_s
    while (row := described(connection, name)[name]).transaction_state != state:
        assert time.monotonic() < deadline, f"{name} is {row.transaction_state}"
        time.sleep(0.05)
    return row


def test_a_decided_transaction_is_told_to_its_partitions(cut_back: Path) -> None:
    with running(cut_back, *KEEP_ALL) as process, Connection(process.bootstrap) as connection:
        wait_for_coordinators(connection, "ctp-1")
        row = wait_for(connection, "ctp-1", "CompleteCommit")
        assert (row.producer_id, row.producer_epoch) == (CTP_1, 0)
        assert consumed(process.bootstrap, "ctp-out", "read_committed") == wanted("ctp-out", "read_committed")
        with Member(process.bootstrap, "ctp") as member:
            assert member.committed("codec-lz4")[0] == 100


def test_an_open_transaction_over_its_time_is_aborted(cut_back: Path) -> None:
    with running(cut_back, *KEEP_ALL) as process, Connection(process.bootstrap) as connection:
        wait_for_coordinators(connection, "gold-1")
        row = described(connection, "gold-1")["gold-1"]
        assert (row.transaction_state, row.producer_id, row.producer_epoch) == ("Ongoing", GOLD_1, 0)
        assert [(t.topic, t.partitions) for t in row.topics] == [("txn", (0,))]
        assert consumed(process.bootstrap, "txn", "read_committed") == wanted("txn", "read_committed")
    with running(cut_back, *KEEP_ALL, *LOOK_OFTEN) as process, Connection(process.bootstrap) as connection:
        wait_for_coordinators(connection, "gold-1")
        row = wait_for(connection, "gold-1", "CompleteAbort")
        left = last_states()["gold-1"]
        assert (row.producer_id, row.producer_epoch) == (left["producerId"], left["producerEpoch"])
        assert consumed(process.bootstrap, "txn", "read_committed") == wanted("txn", "read_committed")
        assert consumed(process.bootstrap, "txn", "read_uncommitted") == wanted("txn", "read_uncommitted")
