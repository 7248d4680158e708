"""Apache Kafka's transactional tools and clients against the broker under test."""

import contextlib
import json
import re
import time

import pytest

from tests.compat.transactional import Confluent, end_offset
from tests.support import peer
from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.transactions import TransactionalProducer

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

INCREMENTAL_ALTER_CONFIGS, BROKER, SET, DELETE = 44, 4, 0, 1
COPIED = 1000
AN_HOUR_MS = 3_600_000


@pytest.fixture
def run(bootstrap):
    """run("transactions", "list") gives the tool's stdout; it must succeed."""

    def call(name, *args, address="--bootstrap-server"):
        done = peer.tool(name, address, bootstrap, *args)
        assert done.returncode == 0, f"{name} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return call


def rows(text):
    """The table that a tool prints, a dict per line."""
    head, *lines = (line.split("\t") for line in text.splitlines() if "\t" in line)
    names = [name.strip() for name in head]
    return [dict(zip(names, (cell.strip() for cell in line), strict=True)) for line in lines]


def test_a_copier_with_random_aborts_copies_everything_once(run, make_topic, unique, raw, bootstrap):
    source, target, group = make_topic(1, "in"), make_topic(1, "out"), unique("group")
    # Large, so that batches fill and leave at once: what still lingers at an abort is never sent.
    values = [b"%04d" % i * 500 for i in range(COPIED)]
    for start in range(0, COPIED, 100):
        assert produce(raw, source, batch(values[start : start + 100])).error_code == 0
    copied = run(
        *("transactional-message-copier", "--input-topic", source, "--input-partition", 0),
        *("--output-topic", target, "--consumer-group", group, "--transactional-id", unique("txn")),
        *("--transaction-size", 20, "--enable-random-aborts", "--group-mode", "--use-group-metadata"),
        address="--broker-list",
    )
    last = json.loads(copied.strip().splitlines()[-1])
    assert (last["consumed"], last["remaining"]) == (COPIED, 0)
    assert end_offset(bootstrap, target, committed=True) > COPIED + COPIED // 20, "no transaction was aborted"
    shown = run(
        *("console-consumer", "--topic", target, "--from-beginning", "--max-messages", COPIED),
        *("--isolation-level", "read_committed", "--timeout-ms", 60_000),
    )
    assert shown.split() == [v.decode() for v in values]
    described = run("consumer-groups", "--describe", "--group", group, "--offsets")
    assert re.search(rf"{group}\s+{source}\s+0\s+{COPIED}\s+{COPIED}\s+0\s", described), described


def test_a_console_consumer_chooses_its_isolation_level(run, topic, unique, bootstrap):
    with TransactionalProducer(bootstrap, unique("txn")) as producer:
        producer.init()
        producer.run(topic, b"good")
        producer.run(topic, b"bad", commit=False)
        producer.run(topic, b"better")
        assert producer.produce(topic, b"open").error_code == 0
        shown = {
            level: peer.tool(
                *("console-consumer", "--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
                *("--isolation-level", level, "--timeout-ms", 4000),
            ).stdout.split()
            for level in ("read_committed", "read_uncommitted")
        }
    assert shown == {
        "read_committed": ["good", "better"],
        "read_uncommitted": ["good", "bad", "better", "open"],
    }


def test_verifiable_clients_pass_over_what_was_aborted(run, topic, unique, bootstrap, tmp_path):
    with TransactionalProducer(bootstrap, unique("txn")) as producer:
        producer.init()
        producer.run(topic, b"bad", b"bad", commit=False)
    produced = run("verifiable-producer", "--topic", topic, "--max-messages", 500, "--throughput", -1)
    assert json.loads(produced.strip().splitlines()[-1])["acked"] == 500
    settings = tmp_path / "consumer.properties"
    settings.write_text("isolation.level=read_committed\n")
    consumed = run(
        *("verifiable-consumer", "--topic", topic, "--group-id", unique("group"), "--max-messages", 500),
        *("--command-config", settings, "--verbose"),
    )
    events = [json.loads(line) for line in consumed.splitlines() if line.startswith("{")]
    taken = [event for event in events if event["name"] == "record_data"]
    assert [(event["offset"], event["value"]) for event in taken] == [(3 + i, str(i)) for i in range(500)]


def test_the_transactions_tool_lists_and_describes(run, topic, unique, bootstrap):
    name = unique("txn")
    with TransactionalProducer(bootstrap, name) as producer:
        producer.init(timeout_ms=54_321)
        assert producer.produce(topic, b"a", b"b").error_code == 0
        (row,) = [r for r in rows(run("transactions", "list")) if r["TransactionalId"] == name]
        assert (row["ProducerId"], row["TransactionState"]) == (str(producer.producer_id), "Ongoing")
        (row,) = rows(run("transactions", "describe", "--transactional-id", name))
        wanted = {
            "ProducerId": str(producer.producer_id),
            "ProducerEpoch": str(producer.epoch),
            "TransactionState": "Ongoing",
            "TransactionTimeoutMs": "54321",
            "TopicPartitions": f"{topic}-0",
        }
        assert {key: row[key] for key in wanted} == wanted
        (row,) = rows(run("transactions", "describe-producers", "--topic", topic, "--partition", 0))
        assert row["CurrentTransactionStartOffset"] == "0"
        assert (row["ProducerEpoch"], row["LastSequence"]) == (str(producer.epoch), "1")
        run("transactions", "forceTerminateTransaction", "--transactionalId", name)
        assert producer.wait_until_ended() in ("CompleteAbort", "Empty")
        assert producer.end(commit=True) in (47, 90)  # fenced
    assert end_offset(bootstrap, topic, committed=True) == end_offset(bootstrap, topic, committed=False)


@contextlib.contextmanager
def without_verification(bootstrap: str):
    """Writes of a transaction that its coordinator does not know are taken, as before Kafka 3.6."""
    key = "transaction.partition.verification.enable"

    def alter(operation: int, value: str | None) -> None:
        entry = {"name": key, "config_operation": operation, "value": value}
        resource = {"resource_type": BROKER, "resource_name": "", "configs": [entry]}
        with Connection(bootstrap) as connection:
            answer = connection.call(
                INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False}
            )
            assert answer.responses[0].error_code == 0, answer

    alter(SET, "false")
    try:
        yield
    finally:
        alter(DELETE, None)


def test_the_transactions_tool_finds_and_aborts_what_hangs(run, topic, unique, bootstrap):
    long_ago_ms = int(time.time() * 1000) - AN_HOUR_MS
    with TransactionalProducer(bootstrap, unique("txn"), epoch_per_transaction=False) as producer:
        producer.init()
        records = producer.batch(topic, 0, b"nobody will end this", timestamp=long_ago_ms)
        data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
        values = {"acks": -1, "timeout": 30_000, "topic_data": data}
        with without_verification(bootstrap):
            deadline = time.monotonic() + 10
            while True:  # a broker takes up a changed setting in its own time
                answer = producer.connection.call(
                    0, 9, {**values, "transactional_id": producer.transactional_id}
                )
                code = int(answer.responses[0].partition_responses[0].error_code)
                if code == 0:
                    break
                assert time.monotonic() < deadline, code
                time.sleep(0.1)
    hanging = rows(run("transactions", "find-hanging", "--topic", topic))
    assert [(r["Topic"], r["Partition"], r["StartOffset"]) for r in hanging] == [(topic, "0", "0")]
    assert end_offset(bootstrap, topic, committed=True) == 0
    run("transactions", "abort", "--topic", topic, "--partition", 0, "--start-offset", 0)
    assert end_offset(bootstrap, topic, committed=True) == 2
    assert Confluent().read(bootstrap, topic, committed=True) == []
