"""Commands whose output depends on what else the cluster holds."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.command import odradek
from tests.support.node import ODRADEK, NodeProcess, running


def rows(bootstrap: str, *arguments: str) -> list[dict[str, Any]]:
    outcome = odradek(*arguments, "-b", bootstrap, "-f", "jsonl")
    assert (outcome.code, outcome.stderr) == (0, "")
    return [json.loads(line) for line in outcome.text.splitlines()]


def test_lists_show_what_is_there(bootstrap: str, unique: Callable[[str], str]) -> None:
    topic, group = unique("cli"), unique("cli-group")
    odradek("topic", "create", topic, "-p", "2", "-b", bootstrap)
    assert odradek("produce", topic, "-b", bootstrap, stdin=b"x\n").code == 0
    assert odradek("consume", topic, "-g", group, "-b", bootstrap).stdout == b"x\n"
    (listed,) = [row for row in rows(bootstrap, "topic", "list") if row["topic"] == topic]
    assert (listed["partitions"], listed["replicas"], listed["internal"]) == (2, 1, False)
    names = [row["topic"] for row in rows(bootstrap, "topic", "list")]
    assert "__consumer_offsets" not in names
    assert "__consumer_offsets" in [row["topic"] for row in rows(bootstrap, "topic", "list", "--internal")]
    (found,) = [row for row in rows(bootstrap, "group", "list") if row["group"] == group]
    assert (found["state"], found["type"], found["protocol_type"]) == ("Empty", "classic", "consumer")
    assert group in [row["group"] for row in rows(bootstrap, "group", "lag")]
    held = [row for row in rows(bootstrap, "cluster", "logdirs", "--partitions") if row["topic"] == topic]
    assert sorted(row["partition"] for row in held) == [0, 1]
    assert sum(row["size"] for row in held) > 0
    at_min = [row for row in rows(bootstrap, "topic", "list", "--at-min-isr") if row["topic"] == topic]
    assert [(row["partition"], row["isr"], row["elr"], row["min_isr"]) for row in at_min] == [
        (0, [1], [], 1),
        (1, [1], [], 1),
    ]
    odradek("topic", "delete", topic, "-y", "-b", bootstrap)
    odradek("group", "delete", group, "-y", "-b", bootstrap)


def test_what_was_deleted_unread_is_no_error(bootstrap: str, unique: Callable[[str], str]) -> None:
    topic, group = unique("cli"), unique("cli-group")
    odradek("topic", "create", topic, "-b", bootstrap)
    assert odradek("produce", topic, "-b", bootstrap, stdin=b"x\n").code == 0
    assert odradek("consume", topic, "-g", group, "-b", bootstrap).stdout == b"x\n"
    assert odradek("produce", topic, "-b", bootstrap, stdin=b"y\nz\n").code == 0
    cut = odradek("topic", "trim", topic, "--offset", "2", "-y", "-b", bootstrap)
    assert cut.code == 0, cut.stderr
    (lag,) = rows(bootstrap, "group", "lag", group)
    assert (lag["committed"], lag["end"], lag["unread"]) == (1, 3, 1)
    odradek("topic", "delete", topic, "-y", "-b", bootstrap)
    odradek("group", "delete", group, "-y", "-b", bootstrap)


def test_the_cluster_is_described(bootstrap: str) -> None:
    info = json.loads(odradek("cluster", "info", "-b", bootstrap, "-f", "json").text)
    assert len(info["cluster_id"]) == 22
    assert info["broker_count"] == len(info["brokers"]) == 1
    assert info["without_leader"] == 0
    assert "metadata.version" in [row["feature"] for row in rows(bootstrap, "cluster", "features")]
    (directory,) = rows(bootstrap, "cluster", "logdirs")
    assert directory["error"] is None
    configs = {row["config"]: row for row in rows(bootstrap, "cluster", "config", "--all")}
    assert configs["num.partitions"]["value"] == "1"
    assert configs["message.max.bytes"]["read_only"] is False
    listed = rows(bootstrap, "cluster", "info", "--unsupported")
    unsupported = {(row["resource"], row["config"]) for row in listed}
    assert ("broker", "ssl.protocol") in unsupported
    assert ("group", "share.session.timeout.ms") in unsupported
    assert ("topic", "remote.storage.enable") in unsupported
    assert not {("broker", "num.partitions"), ("topic", "retention.ms")} & unsupported


def test_following_ends_with_an_interrupt_and_exit_code_0(
    bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = unique("cli")
    odradek("topic", "create", topic, "-b", bootstrap)
    follower = subprocess.Popen(
        [ODRADEK, "consume", topic, "--follow", "-b", bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert odradek("produce", topic, "-b", bootstrap, stdin=b"news\n").code == 0
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"news\n"
        follower.send_signal(signal.SIGINT)
        assert follower.wait(20) == 0
        assert follower.communicate() == (b"", b"")
    finally:
        follower.kill()
        follower.wait()
        odradek("topic", "delete", topic, "-y", "-b", bootstrap)


def test_a_follower_says_once_that_the_node_is_lost_and_once_that_it_is_back(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data")
    odradek("topic", "create", "t", "-b", node.bootstrap)
    follower = subprocess.Popen(
        [ODRADEK, "consume", "t", "--follow", "-b", node.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert odradek("produce", "t", "-b", node.bootstrap, stdin=b"one\n").code == 0
        assert follower.stdout.readline() == b"one\n"
        node.stop(signal.SIGKILL)
        lost = follower.stderr.readline().decode()
        assert lost.startswith(f"lost {node.bootstrap}: ")
        assert lost.endswith("; retrying\n")
        with running(tmp_path / "data", "--port", node.bootstrap.rpartition(":")[2]):
            assert follower.stderr.readline().decode() == f"connected to {node.bootstrap} again\n"
            assert odradek("produce", "t", "-b", node.bootstrap, stdin=b"two\n").code == 0
            assert follower.stdout.readline() == b"two\n"
            follower.send_signal(signal.SIGINT)
            assert follower.wait(20) == 0
            assert follower.communicate() == (b"", b"")
    finally:
        follower.kill()
        follower.wait()


def test_an_http_port_and_an_address_that_leads_nowhere_are_recognized(tmp_path: Path) -> None:
    advertised = "advertised.listeners=PLAINTEXT://no.such.host.invalid:19392"
    with running(tmp_path / "data", "--http", "0", "--set", advertised) as node:
        found = re.search(r"http (\S+),", node.ready_line)
        assert found
        outcome = odradek("topic", "list", "-b", found[1])
        assert (outcome.code, outcome.stderr) == (
            1,
            f"error: {found[1]} speaks HTTP, not Kafka's protocol\n  is the address right? -b HOST:PORT\n",
        )
        assert odradek("topic", "create", "t", "-b", node.bootstrap).code == 0
        for outcome in (
            odradek("produce", "t", "-b", node.bootstrap, stdin=b"x\n"),
            odradek("consume", "t", "-b", node.bootstrap),
        ):
            assert outcome.code == 1
            assert outcome.stderr.startswith(
                f"error: {node.bootstrap} names its broker no.such.host.invalid:19392, "
            )


def test_completion_knows_live_names(bootstrap: str, unique: Callable[[str], str]) -> None:
    topic = unique("cli-completed")
    odradek("topic", "create", topic, "-b", bootstrap)
    completed = odradek(
        _ODRADEK_COMPLETE="complete_bash",
        COMP_WORDS="odradek topic describe cli-comp",
        COMP_CWORD="3",
        ODRADEK_BOOTSTRAP_SERVERS=bootstrap,
    )
    assert completed.text.split() == [topic]
    odradek("topic", "delete", topic, "-y", "-b", bootstrap)


def test_a_reader_that_has_seen_enough_is_no_failure(bootstrap: str, unique: Callable[[str], str]) -> None:
    topic = unique("cli")
    odradek("topic", "create", topic, "-b", bootstrap)
    lines = b"".join(b"%d\n" % number for number in range(50_000))
    assert odradek("produce", topic, "-b", bootstrap, stdin=lines).code == 0
    reader = subprocess.Popen(
        [ODRADEK, "consume", topic, "-b", bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"0\n"
        reader.stdout.close()
        assert reader.stderr is not None
        assert reader.stderr.read() == b""
        assert reader.wait(20) == 0
    finally:
        reader.kill()
        reader.wait()
        odradek("topic", "delete", topic, "-y", "-b", bootstrap)


def test_a_feature_is_downgraded_and_upgraded_again(tmp_path: Path) -> None:
    feature = "transaction.version"

    def level(bootstrap: str) -> int:
        (row,) = [row for row in rows(bootstrap, "cluster", "features") if row["feature"] == feature]
        found: int = row["finalized"]
        return found

    with running(tmp_path / "data") as node:
        for verb, before, after in (("downgrade", 2, 1), ("upgrade", 1, 2)):
            (row,) = rows(node.bootstrap, "cluster", "features", verb, feature, str(after), "-y")
            assert row == {"feature": feature, "before": before, "after": after}
            assert level(node.bootstrap) == after


def test_a_node_alone_is_a_healthy_cluster(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        outcome = odradek("cluster", "health", "-b", node.bootstrap)
        assert (outcome.code, outcome.stderr) == (0, "")
        assert outcome.text == "healthy: 1 broker, controller 1 leads 1 voter, 0 partitions with a leader\n"
        assert rows(node.bootstrap, "cluster", "health") == []
        (voter,) = rows(node.bootstrap, "cluster", "quorum")
        assert (voter["node"], voter["role"], voter["lag"]) == (1, "leader", 0)
