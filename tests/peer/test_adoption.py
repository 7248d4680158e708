"""One data directory, served by Apache Kafka and by Odradek in turn, stopped and killed.

Topics, their configs and log starts, records in every codec, groups of both protocols and transactions in
every state: each broker serves what the other one served.
"""

import os
import re
import signal
import time

import pytest
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from odradek.runtime.ports import free_port
from tests.support import peer
from tests.support.node import NodeProcess, running
from tests.support.processes import wait_until_gone

pytestmark = [pytest.mark.apache, pytest.mark.timeout(400)]

WIDE = 12
TOPICS = {
    "plain": (2, {"retention.ms": "86400000", "segment.bytes": "1048576"}),
    "packed": (1, {"compression.type": "producer"}),
    "compacted": (1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"}),
    "wide": (WIDE, {}),
    "flushed": (1, {"flush.messages": "1"}),
}
GROUPS = {"old": "classic", "new": "consumer"}
INTERNAL = ("offsets.topic.num.partitions=3", "transaction.state.log.num.partitions=3")
NOT_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Apache:
    """Apache's node: started, stopped and killed on a directory that it shares."""

    def __init__(self, directory):
        self.directory = directory
        self.bootstrap = peer.start(
            directory, free_port(), *INTERNAL, "log.flush.start.offset.checkpoint.interval.ms=300"
        )
        self.data = directory / "node-1" / "data"

    def restart(self, *sets):
        """What its log says of the logs it found."""
        log = self.directory / "logs" / "node-1.log"
        before = log.stat().st_size
        peer.command("restart", self.directory, "all", *(w for s in sets for w in ("--set", s)))
        return log.read_text()[before:]

    @property
    def pid(self):
        return int(peer.command("status", self.directory).split()[2])

    def stop(self):
        peer.stop(self.directory)


@pytest.fixture(scope="module")
def apache(tmp_path_factory):
    node = Apache(tmp_path_factory.mktemp("adoption") / "apache")
    yield node
    node.stop()


QUIET = {"log_level": 0}


def produce(bootstrap, topic, values, *, partition=0, **config):
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, **QUIET, **config})
    errors = []
    for value in values:
        producer.produce(
            topic,
            value,
            key=value[:6],
            partition=partition,
            on_delivery=lambda error, _: error and errors.append(error),
        )
    assert producer.flush(30) == 0
    assert not errors, errors


def transactional(bootstrap, name, **config):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, **QUIET, **config})
    producer.init_transactions(30)
    producer.begin_transaction()
    return producer


def write_all(bootstrap, tag):
    """Something of everything. Gives the producer whose transaction is open."""
    for partition in range(2):
        produce(bootstrap, "plain", [b"%s-%d" % (tag, i) for i in range(50)], partition=partition)
    for codec in CODECS:
        produce(
            bootstrap,
            "packed",
            [b"%s-%s-%d" % (tag, codec.encode(), i) for i in range(40)],
            **{"compression.type": codec},
        )
    produce(bootstrap, "compacted", [b"%d" % (i % 5) for i in range(WIDE)])
    produce(bootstrap, "flushed", [tag])
    for commit in (True, False):
        producer = transactional(bootstrap, f"{tag.decode()}-{commit}")
        for partition in range(2):
            producer.produce("plain", b"%s-in-transaction" % tag, partition=partition)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)
    for group, protocol in GROUPS.items():
        consume_some(bootstrap, group, protocol)
    still_open = transactional(bootstrap, f"{tag.decode()}-open")
    still_open.produce("packed", b"%s-open" % tag, partition=0)
    still_open.flush(30)
    return still_open


def consume_some(bootstrap, group, protocol):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["plain"])
    read = 0
    while read < 20:
        message = consumer.poll(30)
        assert message is not None, f"{group} reads nothing"
        assert message.error() is None, message.error()
        read += 1
    consumer.commit(asynchronous=False)
    consumer.close()


def records(bootstrap, isolation):
    """Every record of every topic as a client sees it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "auditor",
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    partitions = [TopicPartition(name, i, -2) for name, (count, _) in TOPICS.items() for i in range(count)]
    consumer.assign(partitions)
    found = {(p.topic, p.partition): [] for p in partitions}
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(30)
        assert message is not None, "cannot be read to its end"
        error = message.error()
        if error is None:
            place = message.topic(), message.partition()
            found[place].append((message.offset(), message.timestamp(), message.key(), message.value()))
        elif error.code() == KafkaError._PARTITION_EOF:
            ended += 1
        else:
            raise AssertionError(error)
    consumer.close()
    return found


def offsets_of(bootstrap, group):
    """What a group committed, once its coordinator has read it. Asked by a consumer: the admin client of
    librdkafka ends the process when the node is not the coordinator yet (it looks for a group of its own to
    tell, and has none)."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    partitions = [TopicPartition(name, i) for name, (count, _) in TOPICS.items() for i in range(count)]
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                found = consumer.committed(partitions, timeout=30)
                return sorted((p.topic, p.partition, p.offset) for p in found if p.offset >= 0)
            except KafkaException as error:
                if error.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
    finally:
        consumer.close()


def state(bootstrap):
    """All that a client can ask about what is kept, except for the open transactions' end."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    topics = admin.describe_topics(TopicCollection(list(TOPICS)))
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in TOPICS]
    configs = {}
    for resource, future in admin.describe_configs(resources).items():
        entries = future.result(30).values()
        configs[resource.name] = {e.name: e.value for e in entries if not e.is_default}
    offsets = {group: offsets_of(bootstrap, group) for group in GROUPS}
    starts = admin.list_offsets(
        {TopicPartition("plain", i): OffsetSpec.earliest() for i in range(2)},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
    )
    return {
        "ids": {name: str(future.result(30).topic_id) for name, future in topics.items()},
        "configs": configs,
        "offsets": offsets,
        "starts": {p.partition: future.result(30).offset for p, future in starts.items()},
        "uncommitted": records(bootstrap, "read_uncommitted"),
    }


def committed_when_ended(bootstrap, wanted=None):
    """What read_committed gives once nothing is open any more: as wanted, or whatever stays the same."""
    deadline = time.monotonic() + 60
    last = None
    while True:
        found = records(bootstrap, "read_committed")
        if found == (last if wanted is None else wanted):
            return found
        assert time.monotonic() < deadline, difference(wanted or last, found)
        last = found
        time.sleep(0.5)


def difference(wanted, found):
    return {place: (rows[-3:], found[place][-3:]) for place, rows in wanted.items() if rows != found[place]}


def values(found, topic):
    return [value for (name, _), rows in found.items() if name == topic for *_, value in rows]


def test_a_directory_goes_from_apache_to_odradek_and_back(apache):
    admin = AdminClient({"bootstrap.servers": apache.bootstrap, **QUIET})
    created = admin.create_topics([NewTopic(n, count, 1, config=c) for n, (count, c) in TOPICS.items()])
    for future in created.values():
        future.result(30)
    still_open = write_all(apache.bootstrap, b"apache")
    deleted = admin.delete_records([TopicPartition("plain", 0, 7)])
    for future in deleted.values():
        assert future.result(30).low_watermark == 7
    before = state(apache.bootstrap)
    assert before["starts"] == {0: 7, 1: 0}
    assert before["offsets"]["old"] and before["offsets"]["new"]
    assert len(values(before["uncommitted"], "packed")) == 40 * len(CODECS) + 1

    # Killed in the moment at which a commit is decided and not yet told to its partitions.
    decided = transactional(apache.bootstrap, "decided")
    for partition in range(WIDE):
        decided.produce("wide", b"decided", partition=partition)
    decided.flush(30)
    pid = apache.pid
    while "plain 0 7" not in (apache.data / "log-start-offset-checkpoint").read_text():
        time.sleep(0.05)
    decided.commit_transaction(30)
    os.kill(pid, signal.SIGKILL)
    wait_until_gone([pid])

    with running(apache.data, "--set", "transaction.max.timeout.ms=900000") as node:
        admin_here = AdminClient({"bootstrap.servers": node.bootstrap})
        assert set(admin_here.list_topics(timeout=30).topics) >= set(TOPICS)
        committed = records_of_decided(node.bootstrap)
        assert committed == [b"decided"] * WIDE
        adopted = state(node.bootstrap)
        for rows in (before["uncommitted"], adopted["uncommitted"]):
            for partition in range(WIDE):
                rows.pop(("wide", partition))
        assert adopted == before
        write_more(node.bootstrap, b"odradek")
        still_open_here = transactional(node.bootstrap, "apache-open")
        still_open_here.abort_transaction(30)
        before = state(node.bootstrap)
        committed = committed_when_ended(node.bootstrap)
        assert b"apache-open" not in values(committed, "packed")
    del still_open, decided

    said = apache.restart()
    assert "Skipping recovery of" in said, "a directory that was closed cleanly is recovered"
    assert recovered(said) == {"__cluster_metadata-0"}
    assert state(apache.bootstrap) == before
    committed_when_ended(apache.bootstrap, committed)
    write_more(apache.bootstrap, b"apache again")
    before = state(apache.bootstrap)
    committed = committed_when_ended(apache.bootstrap)
    apache.stop()

    node = NodeProcess(apache.data)
    try:
        assert state(node.bootstrap) == before
        committed_when_ended(node.bootstrap, committed)
        write_more(node.bootstrap, b"killed")
        before = state(node.bootstrap)
        committed = committed_when_ended(node.bootstrap)
    finally:
        node.stop(signal.SIGKILL)

    said = apache.restart()
    assert "since no clean shutdown file was found" in said
    assert {"plain-0", "plain-1"} <= recovered(said)
    assert state(apache.bootstrap) == before
    committed_when_ended(apache.bootstrap, committed)
    apache.stop()


def recovered(said):
    """The logs that Apache has recovered; its own metadata log always is."""
    return set(re.findall(r"Recovering unflushed segment .* recovered for (\S+)\.$", said, re.MULTILINE))


def write_more(bootstrap, tag):
    """Transactions that are all ended, so that readers of both kinds can be compared."""
    write_all(bootstrap, tag).abort_transaction(30)


def records_of_decided(bootstrap):
    """The transaction that was decided is finished by whoever comes next, without its producer."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "auditor",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("wide", partition, 0) for partition in range(WIDE)])
    found = []
    while len(found) < WIDE:
        message = consumer.poll(30)
        assert message is not None, f"the decision reached {len(found)} of {WIDE} partitions"
        assert message.error() is None, message.error()
        found.append(message.value())
    consumer.close()
    return found


def test_apache_serves_a_directory_that_only_odradek_wrote(apache, tmp_path):
    with running(tmp_path / "ours", "--set", INTERNAL[0], "--set", INTERNAL[1]) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        created = admin.create_topics([NewTopic(n, count, 1, config=c) for n, (count, c) in TOPICS.items()])
        for future in created.values():
            future.result(30)
        write_more(node.bootstrap, b"ours")
        for future in admin.delete_records([TopicPartition("plain", 1, 9)]).values():
            assert future.result(30).low_watermark == 9
        before = state(node.bootstrap)
        committed = committed_when_ended(node.bootstrap)
    said = apache.restart(f"log.dirs={tmp_path / 'ours'}")
    try:
        assert "Skipping recovery of" in said
        assert recovered(said) == {"__cluster_metadata-0"}
        assert state(apache.bootstrap) == before
        committed_when_ended(apache.bootstrap, committed)
        produce(apache.bootstrap, "plain", [b"after"])
    finally:
        apache.stop()
