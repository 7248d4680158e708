"""`odradek up` as users run it: a cluster around a command, or until a signal. Nothing of it is left."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from odradek.client.blocking import BlockingClient
from tests.support.local_cluster import LIMIT_S, up
from tests.support.node import ODRADEK


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_runs_in_the_cluster_and_gives_the_exit_code() -> None:
    script = "import os, sys; print(os.environ['KAFKA_BOOTSTRAP_SERVERS']); sys.exit(7)"
    with up("-n", "3", "--port", "0", "--memory", "--", sys.executable, "-c", script) as running:
        ready = running.until(r"^3 nodes ready: (\S+), \d+ ms$")
        code, out = running.end()
    assert code == 7
    assert out.strip() == ready[1]
    addresses = ready[1].split(",")
    for node_id, address in enumerate(addresses, 1):
        assert re.search(rf"^node {node_id}  ready {address} \d+ ms$", running.said, re.MULTILINE)
    assert re.search(r"^node \d  active controller, epoch \d+$", running.said, re.MULTILINE)
    assert "INFO" not in running.said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_of_it(number: signal.Signals) -> None:
    with up("-n", "3", "--port", "0", "--memory") as running:
        running.until("^3 nodes ready")
        nodes, folder = running.node_processes(), running.folder()
        assert nodes.keys() == {1, 2, 3}
        assert folder.exists()
        running.process.send_signal(number)
        code, _ = running.end()
    assert code == 0
    assert not [pid for pid in nodes.values() if is_running(pid)]
    assert not folder.exists()
    assert "ended with" not in running.said
    assert "killed by" not in running.said


def test_a_signal_while_the_cluster_starts_leaves_nothing() -> None:
    with up("-n", "2", "--port", "0", "--memory") as running:
        deadline = time.monotonic() + LIMIT_S
        while len(nodes := running.node_processes()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        folder = running.folder()
        running.process.send_signal(signal.SIGTERM)
        code, _ = running.end()
    assert code == 130
    assert not [pid for pid in nodes.values() if is_running(pid)]
    assert not folder.exists()


def test_a_signal_is_passed_on_to_the_command() -> None:
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('waiting', file=sys.stderr, flush=True)\n"
        "signal.pause()\n"
    )
    with up("-n", "1", "--port", "0", "--memory", "--", sys.executable, "-c", script) as running:
        running.until("^waiting")
        running.process.send_signal(signal.SIGTERM)
        assert running.end()[0] == 5


def test_a_command_that_a_signal_ended_gives_the_code_of_a_shell() -> None:
    with up("-n", "1", "--port", "0", "--memory", "--", "sh", "-c", "kill -9 $$") as running:
        assert running.end()[0] == 128 + signal.SIGKILL


def test_a_command_that_does_not_exist_is_named() -> None:
    with up("-n", "1", "--port", "0", "--memory", "--", "/no/such/command") as running:
        assert running.end()[0] == 1
    assert running.said.endswith("error: /no/such/command: No such file or directory\n")


def test_a_killed_parent_takes_its_nodes_along() -> None:
    with up("-n", "2", "--port", "0", "--memory") as running:
        running.until("^2 nodes ready")
        nodes, folder = running.node_processes(), running.folder()
        running.process.kill()
        running.end()
        deadline = time.monotonic() + LIMIT_S
        while any(is_running(pid) for pid in nodes.values()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    for path in sorted(folder.rglob("*"), reverse=True):  # nobody is left to do it
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


def test_a_node_that_dies_is_shown_and_the_others_go_on() -> None:
    with up("-n", "3", "--port", "0", "--memory") as running:
        servers = running.until(r"^3 nodes ready: (\S+),")[1]
        active = int(running.until(r"^node (\d)  active controller")[1])
        os.kill(running.node_processes()[active], signal.SIGKILL)
        running.until(rf"^node {active}  killed by SIGKILL$")
        running.until(rf"^node (?!{active})\d  active controller, epoch \d+$")
        alive = [address for n, address in enumerate(servers.split(","), 1) if n != active]
        with BlockingClient(",".join(alive)) as client:
            (result,) = client.call(client.admin.create_topics, {"t": 1})
        assert result.error_code == 0
        running.process.send_signal(signal.SIGINT)
        assert running.end()[0] == 0


def test_a_directory_is_used_again_with_its_data(tmp_path: Path) -> None:
    arguments = ("-n", "3", "-d", str(tmp_path / "cluster"), "--port", "0")
    made = ("--seed-topic", "orders:3", "--", "sh", "-c", "echo $KAFKA_BOOTSTRAP_SERVERS")
    with up(*arguments, *made) as first:
        assert (begun := first.end())[0] == 0
    listed = f"echo $KAFKA_BOOTSTRAP_SERVERS; {ODRADEK} topic list -b $KAFKA_BOOTSTRAP_SERVERS -f csv"
    with up(*arguments, "--", "sh", "-c", listed) as second:
        code, out = second.end()
    assert code == 0
    assert out.startswith(begun[1])
    assert "orders,3," in out


@pytest.mark.parametrize(("count", "replicas"), [(3, 3), (2, 2)])
def test_seed_topics_and_internal_ones_have_as_many_replicas_as_the_brokers_allow(
    count: int, replicas: int
) -> None:
    script = """
import os
from confluent_kafka import Consumer, Producer
servers = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]}
producer = Producer({**servers, "transactional.id": "t"})
producer.init_transactions()
producer.begin_transaction()
producer.produce("orders", b"x")
producer.commit_transaction()
consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
consumer.subscribe(["orders"])
assert consumer.poll(60).value() == b"x"
consumer.close()
topics = producer.list_topics(timeout=30).topics
for name in ("orders", "__consumer_offsets", "__transaction_state"):
    print(name, {len(partition.replicas) for partition in topics[name].partitions.values()})
"""
    seed = ("--seed-topic", f"orders:1:{replicas}")
    with up(
        "-n", str(count), "--port", "0", "--memory", *seed, "--", sys.executable, "-c", script
    ) as running:
        code, out = running.end()
    assert code == 0, running.said
    assert out.splitlines() == [
        f"{name} {{{replicas}}}" for name in ("orders", "__consumer_offsets", "__transaction_state")
    ]


@pytest.mark.parametrize("count", ["2", "4"])
def test_a_directory_of_another_number_of_nodes_is_refused(tmp_path: Path, count: str) -> None:
    with up("-n", "3", "-d", str(tmp_path), "--port", "0", "--", "true") as first:
        assert first.end()[0] == 0
    with up("-n", count, "-d", str(tmp_path), "--", "true") as second:
        assert second.end()[0] == 2
    assert second.said == f"error: {tmp_path} holds a cluster of 3 nodes\n  next: odradek up -n 3\n"


@pytest.mark.parametrize(
    "arguments", [("-n", "0"), ("-n", "x"), ("--memory", "-d", "x"), ("--seed-topic", ":3")]
)
def test_a_wrong_command_line_is_refused(arguments: tuple[str, ...]) -> None:
    with up(*arguments) as running:
        assert running.end()[0] == 2
    assert running.said.startswith("error: ")
