"""What the coordinators write, read by Apache Kafka's own dump-log: record for record what Apache writes.

The same requests are sent to a node of each. What may differ: ids, times, places, the order of topics within
a transaction, and that offsets committed in one carry their topic's id, as those committed otherwise do.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from odradek.runtime.ports import free_port
from tests.support import peer
from tests.support.group import Member
from tests.support.node import running
from tests.support.topics import create_topic
from tests.support.transactions import TransactionalProducer

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

TOPIC, GROUP, IDS = "orders", "billing", ("first", "second")
ONE_PARTITION = ("transaction.state.log.num.partitions=1", "offsets.topic.num.partitions=1")


def act(bootstrap: str) -> None:
    """Commits, aborts and a takeover, by a client of each generation, with and without a group's offsets."""
    create_topic(bootstrap, TOPIC, 2)
    with Member(bootstrap, GROUP) as member:
        member.stabilise()
        for name, epoch_per_transaction in zip(IDS, (False, True), strict=True):
            with TransactionalProducer(
                bootstrap, name, epoch_per_transaction=epoch_per_transaction
            ) as producer:
                producer.init(timeout_ms=12_345)
                assert producer.produce(TOPIC, b"a").error_code == 0
                assert producer.produce(TOPIC, b"b", partition=1).error_code == 0
                assert producer.commit_offset(GROUP, TOPIC, 5, **member.identity) == 0
                assert producer.end(commit=True) == 0
                producer.wait_until_ended()
                assert producer.commit_offset(GROUP, TOPIC, 6, **member.identity) == 0
                assert producer.end(commit=False) == 0
                producer.wait_until_ended()
                assert producer.produce(TOPIC, b"c").error_code == 0
                producer.init()
                producer.wait_until_ended()


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(ours, Apache's), both stopped."""
    ours, apaches = tmp_path_factory.mktemp("ours") / "data", tmp_path_factory.mktemp("apache") / "k"
    with running(ours, *(a for s in ONE_PARTITION for a in ("--set", s))) as node:
        act(node.bootstrap)
    try:
        act(peer.start(apaches, free_port(), *ONE_PARTITION))
    finally:
        peer.stop(apaches)
    return ours, apaches / "node-1" / "data"


def dump(directory: Path, partition: str, decoder: str) -> str:
    done = peer.tool("dump-log", decoder, "--files", directory / partition / "00000000000000000000.log")
    assert done.returncode == 0, done.stderr
    assert not re.search(r"isvalid: false|exception|could not", done.stdout, re.I), done.stdout
    return done.stdout


def decoded(text: str) -> list[Any]:
    """(key, value) of every record, or the marker it is."""
    found: list[Any] = []
    for line in text.splitlines():
        marker = re.search(r"endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)", line)
        record = re.search(r"key: (\{.*\}) payload: (.*)$", line)
        if marker:
            found.append(marker.groups())
        elif record:
            found.append((json.loads(record[1]), plain(json.loads(record[2]))))
    return found


def plain(value: Any) -> Any:
    """What is the same in every run."""
    if isinstance(value, dict):
        volatile = re.compile(r"(?i)producerid$|timestamp(ms)?$|topicId|memberid|leader$|clientHost")
        kept = {k: plain(v) for k, v in value.items() if not volatile.search(k)}
        return {k: sorted(v, key=str) if k == "transactionPartitions" and v else v for k, v in kept.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("partition", "decoder"),
    [
        ("__transaction_state-0", "--transaction-log-decoder"),
        ("__consumer_offsets-0", "--offsets-decoder"),
        ("orders-0", "--print-data-log"),
    ],
)
def test_the_same_requests_leave_the_same_records(
    directories: tuple[Path, Path], partition: str, decoder: str
) -> None:
    ours, apaches = (dump(directory, partition, decoder) for directory in directories)
    assert len(decoded(apaches)) >= 8 or partition == "orders-0"
    assert decoded(ours) == decoded(apaches)
    assert heads(ours) == heads(apaches)


def heads(text: str) -> list[tuple[str, ...]]:
    """What stands in the head of every batch but ids, times and places."""
    names = (
        *("count", "baseSequence", "lastSequence", "producerEpoch", "partitionLeaderEpoch"),
        *("isTransactional", "isControl", "compresscodec"),
    )
    return [
        tuple(re.search(rf"\b{name}: (\S+)", line)[1] for name in names)  # type: ignore[index]
        for line in text.splitlines()
        if line.startswith("baseOffset")
    ]
