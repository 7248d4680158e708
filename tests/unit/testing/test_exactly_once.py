"""Each violation that assert_exactly_once claims to find, planted."""

import pytest
from confluent_kafka import Producer

from odradek.client.partition_reader import ConsumerRecord
from odradek.core.types import TopicPartition
from odradek.testing.exactly_once import findings
from odradek.testing.kafka import Kafka
from odradek.testing.report import failure_report
from odradek.testing.server import KafkaServer

NAMES = ("source", "sink", "group")


def records(*keys):
    return [ConsumerRecord("t", 0, i, 0, 0, key, b"v", (), 0) for i, key in enumerate(keys)]


def test_every_record_once_is_fine():
    assert findings(records(b"a", b"b"), records(b"b", b"a"), 0, NAMES) == []


def test_equal_source_records_must_come_as_often():
    assert findings(records(b"a", b"a"), records(b"a", b"a"), 0, NAMES) == []
    assert findings(records(b"a", b"a"), records(b"a"), 0, NAMES) == ["missing from sink: b'a'"]


def test_a_lost_record_is_named():
    assert findings(records(b"a", b"b"), records(b"a"), 0, NAMES) == ["missing from sink: b'b'"]


def test_a_duplicate_is_named_with_its_number():
    assert findings(records(b"a"), records(b"a", b"a", b"a"), 0, NAMES) == ["too many in sink: b'a' x2"]


def test_an_invented_record_is_named():
    assert findings(records(b"a"), records(b"a", b"x"), 0, NAMES) == ["too many in sink: b'x'"]


def test_what_the_group_has_not_read_counts():
    assert findings(records(b"a"), records(b"a"), 3, NAMES) == [
        "group group has not committed 3 of the records in source"
    ]


def test_without_keys_the_numbers_are_compared():
    assert findings(records(None, None), records(None, None), 0, NAMES) == []
    assert findings(records(None), records(None, None), 0, NAMES) == ["source has 1 records, sink has 2"]


def test_many_findings_are_cut_short():
    keys = [str(i).encode() for i in range(9)]
    (text,) = findings(records(*keys), [], 0, NAMES)
    assert text.endswith("and 4 more")


def test_an_open_transaction_is_named():
    held = {TopicPartition("sink", 0): 5}
    assert findings(records(b"a"), records(b"a"), 0, NAMES, held) == [
        "sink-0 has a transaction open at offset 5"
    ]


def transactional(servers, name):
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions()
    return producer


@pytest.fixture(scope="module")
def server():
    found = KafkaServer.embedded({})
    yield found
    found.close()


def test_markers_and_aborted_records_do_not_count(server):
    kafka = Kafka(server)
    source, sink, group = kafka.topic("source"), kafka.topic("sink"), kafka.group("g")
    client = server.client
    writer, copier = (
        transactional(server.bootstrap_servers, "writer"),
        transactional(server.bootstrap_servers, "copier"),
    )
    for end in (writer.commit_transaction, writer.abort_transaction, writer.commit_transaction):
        writer.begin_transaction()
        writer.produce(source, b"v", key=end.__name__ + str(len(kafka.values(source))))
        writer.flush()
        end()
    for end in (copier.abort_transaction, copier.commit_transaction):
        copier.begin_transaction()
        for record in kafka._read(source):
            copier.produce(sink, record.value, key=record.key)
        copier.flush()
        end()
    client.call(client.admin.commit, group, {TopicPartition(source, 0): 5})  # the last record, not its marker
    kafka.assert_exactly_once(source=source, sink=sink, group=group)
    client.call(client.admin.commit, group, {TopicPartition(source, 0): 4})
    with pytest.raises(AssertionError, match=f"group {group} has not committed 1 of the records"):
        kafka.assert_exactly_once(source=source, sink=sink, group=group, timeout=0.2)
    kafka.close()


def test_an_open_transaction_is_waited_for_and_reported(server):
    kafka = Kafka(server)
    source, sink, group = kafka.topic("source"), kafka.topic("sink"), kafka.group("g")
    copier = transactional(server.bootstrap_servers, "late")
    copier.begin_transaction()
    copier.produce(sink, b"v", key=b"k")
    copier.flush()
    with pytest.raises(AssertionError, match=f"{sink}-0 has a transaction open at offset 0"):
        kafka.assert_exactly_once(source=source, sink=sink, group=group, timeout=0.2)
    report = failure_report(kafka)
    assert "  0 open key=b'k' value=b'v'" in report
    assert f"transaction of late: Ongoing, holds {sink}-0" in report
    copier.abort_transaction()
    kafka.assert_exactly_once(source=source, sink=sink, group=group)
    report = failure_report(kafka)
    assert "  0 aborted key=b'k' value=b'v'" in report
    assert "transaction of" not in report
    kafka.close()
