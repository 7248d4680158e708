"""Three replicas of which some are Apache Kafka's and some ours, leaders on both sides, and both are killed.

Every acknowledged record is there once, in order; all replicas have the same batches by our comparison and by
Apache's dump-log; Apache's tools say of the cluster what they would say of one of its own.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from odradek.client.blocking import BlockingClient
from odradek.sim.checkers.anomalies import anomalies
from tests.support.mixed import APACHE, ODRADEK, Member, MixedCluster, mixed
from tests.support.mixed_clients import create
from tests.support.peer_tools import Tools
from tests.support.quorum_tables import until
from tests.support.recorded import judge, load
from tests.support.replicas import MIN_ISR, states_of, until_in_sync
from tests.support.verifiable import Running, Verifiable, operations_of

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

ROUNDS = int(os.environ.get("ODRADEK_SOAK_MIXED_ROUNDS", "1"))
CONTROLLER, BROKER, GUEST = 1, 2, 11
"""The first one is not killed; the guest is of the other kind."""
SESSION_S = 3.0
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": str(int(SESSION_S * 1000)),
    "broker.heartbeat.interval.ms": "500",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.enable": "false",
}
FILTERS = ("under-replicated", "at-min-isr", "under-min-isr", "unavailable")


def members(host: str, guest: str) -> list[Member]:
    return [
        Member(CONTROLLER, host, "broker,controller"),
        Member(BROKER, host, "broker"),
        Member(GUEST, guest, "broker"),
    ]


REPLICAS = [[CONTROLLER, BROKER, GUEST], [BROKER, GUEST, CONTROLLER], [GUEST, CONTROLLER, BROKER]]


class Judge:
    def __init__(self, cluster: MixedCluster, tools: Tools, client: BlockingClient) -> None:
        self.cluster, self.tools, self.client = cluster, tools, client
        self.folders = {n: [Path(node.properties["log.dirs"])] for n, node in cluster.nodes.items()}

    def tool(self, name: str, *arguments: object) -> str:
        return self.tools.run(name, "--bootstrap-server", self.cluster.servers, *arguments)

    def filtered(self) -> dict[str, list[int]]:
        """The partitions that each filter of `topics --describe` finds."""
        return {
            name: [
                int(p)
                for p in re.findall(
                    r"Topic: orders\tPartition: (\d+)",
                    self.tool("topics", "--describe", f"--{name}-partitions"),
                )
            ]
            for name in FILTERS
        }

    def leaders_go_home(self) -> None:
        self.tool("leader-election", "--election-type", "preferred", "--all-topic-partitions")
        wanted = {p: replicas[0] for p, replicas in enumerate(REPLICAS)}
        until(
            lambda: {p: state.leader for p, state in states_of(self.client, "orders").items()} == wanted,
            what=lambda: states_of(self.client, "orders"),
        )

    def log_dirs(self) -> None:
        """Every broker has a replica of each partition, of one size, and without lag."""
        text = self.tool("log-dirs", "--describe", "--topic-list", "orders")
        told = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        found = {
            broker["broker"]: {
                p["partition"]: (p["size"], p["offsetLag"], p["isFuture"])
                for folder in broker["logDirs"]
                for p in folder["partitions"]
            }
            for broker in told["brokers"]
        }
        assert set(found) == {CONTROLLER, BROKER, GUEST}
        assert found[CONTROLLER] == found[BROKER] == found[GUEST]
        assert set(found[GUEST]) == {f"orders-{p}" for p in range(len(REPLICAS))}
        assert all(lag == 0 and not is_future for _, lag, is_future in found[GUEST].values())

    def verified(self, folder: Path) -> None:
        """Apache's replica verification fetches from every replica, also from followers, and compares."""
        words = ("--broker-list", self.cluster.servers, "--topics-include", "orders", "--time", -2)
        tool = Running(folder, "replica-verification", *words, "--report-interval-ms", 500)
        try:
            until(
                lambda: len(re.findall(r"max lag is 0 for partition orders-\d at offset \d+", tool.text)) > 1,
                what=lambda: tool.text,
            )
        finally:
            tool.close()
        assert not re.search(r"partition \S+ has different|error|exception", tool.text, re.I), tool.text

    def dumped(self) -> None:
        """Apache's dump-log finds the same batches in every replica."""
        for partition in range(len(REPLICAS)):
            found = {n: self._batches(folders[0], partition) for n, folders in self.folders.items()}
            assert found[CONTROLLER] == found[BROKER] == found[GUEST]
            assert found[GUEST]

    def _batches(self, folder: Path, partition: int) -> list[tuple[str, ...]]:
        segments = sorted((folder / f"orders-{partition}").glob("*.log"))
        dumped = self.tools.run("dump-log", "--files", ",".join(map(str, segments)))
        assert not re.search(r"isvalid: false|mismatch|corrupt", dumped), dumped[-2000:]
        return re.findall(
            r"baseOffset: (\d+) lastOffset: (\d+) .* partitionLeaderEpoch: (\d+) .* crc: (\d+)", dumped
        )


@contextmanager
def verifiable_clients(servers: str, folder: Path) -> Iterator[None]:
    """Apache's verifiable producer and consumer, while something happens; the judges read what they print."""
    at = ("--bootstrap-server", servers, "--topic", "verified")
    retries = folder / "retries.properties"
    retries.write_text("retries=2147483647\n")  # it has none by itself
    with ExitStack() as stack:
        options = ("--throughput", 100, "--command-config", retries)
        producer = Verifiable(folder, "verifiable-producer", *at, *options)
        stack.callback(producer.close)
        consumer = Verifiable(folder, "verifiable-consumer", *at, "--group-id", "v", "--verbose")
        stack.callback(consumer.close)
        until(lambda: consumer.count("record_data") > 0, what=lambda: (producer.text, consumer.text))
        yield
        producer.end()
        assert producer.count("producer_send_error") == 0
        written = producer.count("producer_send_success")
        assert written > 0
        until(lambda: consumer.count("record_data") >= written, what=lambda: consumer.text[-3000:])
        consumer.end()
        found = anomalies(operations_of(producer, consumer))
        assert not found, found


def play(
    cluster: MixedCluster, tools: Tools, folder: Path, victims: tuple[int, ...], *, is_short: bool
) -> None:
    """`is_short`: without Apache's verifiable clients and its replica verification, which are a JVM each."""
    cluster.start()
    servers = cluster.servers
    gaps: list[tuple[str, float]] = []
    with ExitStack() as stack:
        client = stack.enter_context(BlockingClient(servers))
        create(servers, "orders", REPLICAS, MIN_ISR)
        create(servers, "verified", REPLICAS, MIN_ISR)
        said = Judge(cluster, tools, client)
        until_in_sync(client, "orders", "verified")
        clients = stack.enter_context(load(servers, "orders", len(REPLICAS), producers=1, consumers=1))
        with nullcontext() if is_short else verifiable_clients(servers, folder):
            for victim in victims * ROUNDS:
                said.leaders_go_home()
                clients.await_acknowledgements(5)
                killed = cluster.kill(victim)
                clients.await_acknowledgements(20)
                gaps.append((cluster.nodes[victim].member.kind, round(clients.longest_gap_s(killed), 2)))
                everyone = list(range(len(REPLICAS)))
                assert said.filtered() == {
                    "under-replicated": everyone,
                    "at-min-isr": everyone,
                    "under-min-isr": [],
                    "unavailable": [],
                }
                cluster.start(victim)
                until_in_sync(client, "orders", "verified", "__consumer_offsets")
        assert said.filtered() == {name: [] for name in FILTERS}
        judge(clients, said.folders)
        said.log_dirs()
        if not is_short:
            said.verified(folder)
        said.dumped()
    print(f"{clients.acknowledged()} acknowledged; longest gaps after kills in s: {gaps}")
    assert max(gap for _, gap in gaps) < SESSION_S + 3, gaps


@pytest.mark.parametrize(
    ("host", "guest"), [(APACHE, ODRADEK), (ODRADEK, APACHE)], ids=["our guest", "apache's guest"]
)
def test_replicas_of_both_kinds_have_every_acknowledged_record_once(
    tmp_path: Path, tools: Tools, host: str, guest: str
) -> None:
    """Two JVMs and more are for the soak: CI kills both kinds in one cluster, and our guest in the other."""
    is_short = host == APACHE and ROUNDS == 1
    with mixed(tmp_path, members(host, guest), SETTINGS) as cluster:
        play(cluster, tools, tmp_path, (GUEST,) if is_short else (GUEST, BROKER), is_short=is_short)
