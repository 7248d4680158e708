"""Apache Kafka's own command-line tools against the broker under test: what an operator already types.

Those that read stdin or wait for records start a JVM each, so a test makes few such calls.
"""

import json
import re

import pytest

from tests.support import peer
from tests.support.batches import batch
from tests.support.group import Member
from tests.support.produce import produce
from tests.support.stored import fetch, split

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]


@pytest.fixture
def run(bootstrap):
    """run("topics", "--list") gives the tool's stdout; it must succeed."""

    def call(name, *args, **options):
        done = peer.tool(name, "--bootstrap-server", bootstrap, *args, **options)
        assert done.returncode == 0, f"{name} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return call


def test_topics(run, unique, bootstrap):
    name = unique("java")
    created = run(
        "topics", "--create", "--topic", name, "--partitions", 2, "--config", "retention.ms=3600000"
    )
    assert f"Created topic {name}." in created
    described = run("topics", "--describe", "--topic", name)
    assert re.search(
        rf"Topic: {name}\tTopicId: \S{{22}}\tPartitionCount: 2\tReplicationFactor: 1\t", described
    )
    assert "retention.ms=3600000" in described
    assert len(re.findall(r"\tPartition: \d\tLeader: (\d+)\tReplicas: \1\tIsr: \1\t", described)) == 2
    run("topics", "--alter", "--topic", name, "--partitions", 5)
    assert name in run("topics", "--list").split()
    run("topics", "--delete", "--topic", name)
    refused = peer.tool("topics", "--bootstrap-server", bootstrap, "--describe", "--topic", name)
    assert refused.returncode != 0
    assert f"Topic '{name}' does not exist" in refused.stdout + refused.stderr


def test_console_producer_and_consumer_share_a_topic_and_a_group(run, topic, unique, bootstrap):
    group = unique("java-group")
    lines = "".join(f"h1:v{i},h2:x\tkey-{i}\tvalue {i}\n" for i in range(50))
    run(
        *("console-producer", "--topic", topic, "--compression-codec", "zstd"),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        stdin=lines,
    )
    out = run(
        *("console-consumer", "--topic", topic, "--group", group, "--from-beginning", "--max-messages", 50),
        *("--timeout-ms", 60_000),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.offset=true"),
    )
    assert out.splitlines() == [f"Offset:{i}\th1:v{i},h2:x\tkey-{i}\tvalue {i}" for i in range(50)]
    described = run("consumer-groups", "--describe", "--group", group, "--offsets")
    head, row = (line.split() for line in described.splitlines() if line.strip() and "no active" not in line)
    shown = dict(zip(head, row, strict=True))
    assert [shown[k] for k in ("GROUP", "TOPIC", "PARTITION")] == [group, topic, "0"]
    assert [shown[k] for k in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")] == ["50", "50", "0"]


def test_consumer_groups_list_reset_and_delete(run, topic, unique, bootstrap, raw):
    group = unique("java-group")
    produce(raw, topic, batch([b"v"] * 10))
    with Member(bootstrap, group) as member:
        member.stabilise()
        member.commit(topic, 8)
        state = run("consumer-groups", "--describe", "--group", group, "--state")
        assert re.search(rf"{group}\s+127\.0\.0\.1:\d+ +\(\d+\)\s+range\s+Stable\s+1", state)
        member.leave()
    assert group in run("consumer-groups", "--list").split()
    reset = run(
        "consumer-groups",
        "--group",
        group,
        "--topic",
        topic,
        "--reset-offsets",
        "--to-offset",
        3,
        "--execute",
    )
    assert re.search(rf"{topic}\s+0\s+3", reset)
    with Member(bootstrap, group) as member:
        assert member.committed(topic)[0] == 3
    run("consumer-groups", "--group", group, "--topic", topic, "--delete-offsets")
    assert f"'{group}'" in run("consumer-groups", "--group", group, "--delete")


def test_perf_tools_move_a_hundred_thousand_records(run, make_topic, raw):
    name = make_topic(partitions=3)
    out = run(
        *("producer-perf-test", "--topic", name, "--num-records", 100_000, "--record-size", 100),
        *("--throughput", -1, "--command-property", "acks=all", "--command-property", "compression.type=lz4"),
    )
    assert "100000 records sent" in out
    assert {b.codec for p in range(3) for b in split(fetch(raw, name, partition=p)[1])} <= {3}
    out = run("consumer-perf-test", "--topic", name, "--num-records", 100_000, "--timeout", 60_000)
    consumed = out.strip().splitlines()[-1].split(", ")
    assert int(consumed[4]) == 100_000


def test_configs_are_altered_and_described(run, topic):
    run(
        "configs",
        "--entity-type",
        "topics",
        "--entity-name",
        topic,
        "--alter",
        "--add-config",
        "retention.ms=12345",
    )
    out = run("configs", "--entity-type", "topics", "--entity-name", topic, "--describe", "--all")
    assert re.search(
        r"retention\.ms=12345 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=12345", out
    )
    assert re.search(r"segment\.bytes=1073741824 sensitive=false", out)
    run(
        "configs",
        "--entity-type",
        "topics",
        "--entity-name",
        topic,
        "--alter",
        "--delete-config",
        "retention.ms",
    )


def test_offsets_records_and_log_dirs(run, topic, raw, tmp_path):
    for i in range(10):
        produce(raw, topic, batch([b"v"], timestamp=1_700_000_000_000 + i))
    assert run("get-offsets", "--topic", topic).strip() == f"{topic}:0:10"
    assert run("get-offsets", "--topic", topic, "--time", "max-timestamp").strip() == f"{topic}:0:9"
    wanted = tmp_path / "offsets.json"
    wanted.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]})
    )
    assert "low_watermark: 4" in run("delete-records", "--offset-json-file", wanted)
    assert run("get-offsets", "--topic", topic, "--time", "earliest").strip() == f"{topic}:0:4"
    described = json.loads(run("log-dirs", "--describe", "--topic-list", topic).strip().splitlines()[-1])
    (replica,) = [p for b in described["brokers"] for d in b["logDirs"] for p in d["partitions"]]
    assert (replica["partition"], replica["size"]) == (f"{topic}-0", 10 * len(batch([b"v"])))


def test_leader_election_and_reassign_partitions_find_nothing_to_do(run, make_topic, tmp_path):
    topic = make_topic(partitions=2)
    elected = run("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", 1)
    assert f"Valid replica already elected for partitions {topic}-1" in elected
    moves = [{"topic": topic, "partition": i, "replicas": [1]} for i in range(2)]
    wanted = tmp_path / "reassignment.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": moves}))
    executed = run("reassign-partitions", "--reassignment-json-file", wanted, "--execute")
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in executed
    verified = run("reassign-partitions", "--reassignment-json-file", wanted, "--verify")
    assert f"Reassignment of partition {topic}-1 is completed." in verified
    assert "No partition reassignments found." in run("reassign-partitions", "--list")


def test_log_levels_are_described_and_changed(run):
    loggers = ("configs", "--entity-type", "broker-loggers", "--entity-name", 1)
    run(*loggers, "--alter", "--add-config", "root=WARN")
    assert "root=WARN sensitive=false" in run(*loggers, "--describe")
    run(*loggers, "--alter", "--add-config", "root=INFO")


def test_what_needs_security_is_refused_by_its_name(run, bootstrap):
    listed = peer.tool("acls", "--bootstrap-server", bootstrap, "--list")
    assert "SecurityDisabledException: No Authorizer is configured" in listed.stdout + listed.stderr
    run("configs", "--entity-type", "users", "--describe")


def test_broker_api_versions_knows_what_it_needs(run):
    out = run("broker-api-versions")
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", out)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", out)
    assert re.search(r"JoinGroup\(11\): 0 to 9 \[usable: 9\]", out)
