"""The Java consumer with both group protocols, and Apache's group tools, against the broker under test."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support import peer
from tests.support.batches import batch
from tests.support.consumer import Consumer, beat_until_assigned, prepare_group
from tests.support.group import Member
from tests.support.node import running
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.topics import create_topic

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

CONSUMER_GROUP_DESCRIBE = 69


class JavaConsumer:
    """A console consumer that runs until it is told to stop."""

    def __init__(self, bootstrap, topic, group, protocol, out: Path):
        self.out = out
        args = [
            *(str(peer.PEER), "tool", "console-consumer", "--bootstrap-server", bootstrap, "--topic", topic),
            *("--group", group, "--from-beginning", "--command-property", f"group.protocol={protocol}"),
        ]
        if protocol == "classic":
            strategy = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            args += ["--command-property", f"partition.assignment.strategy={strategy}"]
        with out.open("wb") as stdout:
            self.process = subprocess.Popen(args, stdout=stdout, stderr=subprocess.STDOUT, env=peer.quick())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    @property
    def values(self):
        return [line for line in self.out.read_text().splitlines() if line.startswith("v")]


def until(condition, timeout_s=90):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def tool(bootstrap, name, *args):
    done = peer.tool(name, "--bootstrap-server", bootstrap, *args)
    assert done.returncode == 0, f"{name} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shares(bootstrap, group):
    """The number of partitions of each member, as ConsumerGroupDescribe has it."""
    with Connection(bootstrap) as connection:
        described = connection.call(
            CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group], "include_authorized_operations": False}
        ).groups[0]
    return sorted(
        (m.member_type, sum(len(t.partitions) for t in m.assignment.topic_partitions))
        for m in described.members
    )


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_java_consumer_reads_and_commits_with_either_protocol(
    bootstrap, make_topic, unique, raw, protocol
):
    topic, group = make_topic(), unique("java-group")
    produce(raw, topic, batch([f"v{i}".encode() for i in range(20)]))
    out = tool(
        bootstrap,
        *("console-consumer", "--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", 20, "--timeout-ms", 60_000, "--command-property", f"group.protocol={protocol}"),
    )
    assert out.splitlines() == [f"v{i}" for i in range(20)]
    with Member(bootstrap, group) as reader:
        assert reader.committed(topic)[0] == 20


def test_a_java_group_moves_from_one_protocol_to_the_other_while_it_runs(
    bootstrap, make_topic, unique, raw, tmp_path
):
    topic, group = make_topic(partitions=2), unique("java-group")
    for partition in range(2):
        values = [f"v{partition}-{i}".encode() for i in range(10)]
        produce(raw, topic, batch(values), partition=partition)
    with JavaConsumer(bootstrap, topic, group, "classic", tmp_path / "old") as old:
        until(lambda: len(old.values) == 20)
        with JavaConsumer(bootstrap, topic, group, "consumer", tmp_path / "new") as new:
            until(lambda: shares(bootstrap, group) == [(0, 1), (1, 1)])
            for partition in range(2):
                values = [f"v{partition}-{i}".encode() for i in range(10, 20)]
                produce(raw, topic, batch(values), partition=partition)
            until(lambda: len(new.values) >= 10 and len(old.values) >= 30)
        expected = sorted(f"v{partition}-{i}" for partition in range(2) for i in range(20))
        assert sorted(old.values + new.values) == expected, "each record once"
        # The last member of the new protocol has left: the group is a classic one again, of one member.
        until(lambda: '"Stable"' in json.dumps(listed(bootstrap, group)))
        assert listed(bootstrap, group) == ["Stable", "classic"]


def listed(bootstrap, group):
    with Connection(bootstrap) as connection:
        rows = connection.call(16, 5, {"states_filter": [], "types_filter": []}).groups
    return next(([r.group_state, r.group_type] for r in rows if r.group_id == group), [])


def table(text):
    """The rows of a tool's table, each by its head."""
    lines = [line for line in text.splitlines() if line.strip()]
    head = re.split(r"  +", lines[0].strip())
    return [dict(zip(head, line.split(), strict=False)) for line in lines[1:]]


def test_apaches_tools_show_a_consumer_group(bootstrap, make_topic, unique, raw):
    topic, group = make_topic(partitions=2), unique("java-group")
    produce(raw, topic, batch([b"v"] * 5))
    prepare_group(bootstrap, group)
    a = Consumer(bootstrap, group, "member-a", [topic])
    b = Consumer(bootstrap, group, "member-b", [topic], instance_id="instance")
    with a, b, Member(bootstrap, group) as committer:
        a.join()
        b.join()
        beat_until_assigned(a, b, expected=2)
        values = {"member_id": "member-a", "generation_id_or_member_epoch": a.epoch}
        assert committer.commit(topic, 3, **values) == 0
        rows = table(tool(bootstrap, "consumer-groups", "--describe", "--group", group, "--offsets"))
        first = next(row for row in rows if row["PARTITION"] == "0")
        assert (first["CURRENT-OFFSET"], first["LAG"], first["CONSUMER-ID"]) == ("3", "2", "member-a")
        members = tool(bootstrap, "consumer-groups", "--describe", "--group", group, "--members", "--verbose")
        assert re.search(rf"member-b +instance .* 3 +{topic}:1 +3 +{topic}:1", members), members
        state = tool(bootstrap, "consumer-groups", "--describe", "--group", group, "--state", "--verbose")
        assert re.search(rf"{group} .* uniform +Stable +3 +3 +2", state), state
        groups = tool(bootstrap, "groups", "--list", "--consumer")
        assert re.search(rf"{group} +Consumer +consumer", groups), groups
        a.leave()
        b.leave()
    tool(
        bootstrap,
        *("consumer-groups", "--group", group, "--topic", topic, "--reset-offsets", "--to-earliest"),
        "--execute",
    )
    with Member(bootstrap, group) as reader:
        assert reader.committed(topic)[0] == 0
    tool(bootstrap, "consumer-groups", "--delete", "--group", group)
    assert listed(bootstrap, group) == []


def test_dump_log_decodes_every_record_of_a_consumer_group(tmp_path):
    with running(tmp_path / "data", "--set", "offsets.topic.num.partitions=1") as node:
        bootstrap = node.bootstrap
        create_topic(bootstrap, "topic", 2)
        prepare_group(bootstrap, "group")
        a = Consumer(bootstrap, "group", "member-a", rack_id="rack")
        b = Consumer(bootstrap, "group", "member-b", ["topic"], instance_id="i", server_assignor="range")
        with a, b:
            a.join(subscribed_topic_names=None, subscribed_topic_regex="top.*")
            beat_until_assigned(a, expected=2)
            b.join()
            beat_until_assigned(a, b, expected=2)
            a.leave()
            b.leave(-2)
    (log,) = (tmp_path / "data").glob("__consumer_offsets-0/*.log")
    done = peer.tool("dump-log", "--offsets-decoder", "--files", log)
    assert done.returncode == 0, done.stderr
    records = re.findall(r"key: (\{.*\}) payload: (\{.*\}|<DELETE>)", done.stdout)
    newest = {}
    for key, payload in records:
        newest.setdefault(json.loads(key)["type"], []).append(payload)
    assert {int(kind) for kind in newest} >= {3, 5, 6, 7, 8, 16}
    regex = json.loads(newest["16"][0])["data"]
    assert regex["topics"] == ["topic"]
    left = json.loads(newest["8"][-1])["data"]
    assert (left["memberEpoch"], left["assignedPartitions"][0]["assignmentEpochs"]) == (-2, [3])
    member = json.loads(newest["5"][0])["data"]
    assert (member["rackId"], member["subscribedTopicRegex"], member["subscribedTopicNames"]) == (
        "rack",
        "top.*",
        [],
    )
