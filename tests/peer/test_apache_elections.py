"""Three brokers under our controller are killed and stopped one after the other: whom it elects, as Apache
Kafka's tools tell it. The brokers are ours, or ours and Apache's."""

import re
import signal
from collections.abc import Sequence, Set
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.mixed import APACHE, ODRADEK, Member, MixedCluster, mixed
from tests.support.mixed_clients import produce, read
from tests.support.peer_tools import Tools
from tests.support.quorum_tables import until
from tests.support.raw import Connection
from tests.support.topics import CREATE_TOPICS

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

OURS, REPLICAS = 1, (11, 12, 13)
KINDS = {"ours": [ODRADEK] * 3, "mixed": [APACHE, ODRADEK, APACHE]}
SETTINGS = {"min.insync.replicas": "2", "auto.leader.rebalance.enable": "false"}
NOBODY = -1


class Described(NamedTuple):
    leader: int
    isr: frozenset[int]
    elr: frozenset[int]
    last_known_elr: frozenset[int]


class Judge:
    """Asks our node with Apache's tools."""

    def __init__(self, tools: Tools, cluster: MixedCluster) -> None:
        self._tools = tools
        self._cluster = cluster
        self._at = ("--bootstrap-server", cluster.nodes[OURS].address)

    def describe(self) -> Described:
        text = self._tools.run("topics", *self._at, "--describe", "--topic", "t")
        found = dict(re.findall(r"\t(\w+): ([\w,/]*)", text.splitlines()[1] + "\t"))
        leader = NOBODY if found["Leader"] == "none" else int(found["Leader"])
        return Described(leader, *(self._ids(found[name]) for name in ("Isr", "Elr", "LastKnownElr")))

    @staticmethod
    def _ids(text: str) -> frozenset[int]:
        return frozenset(int(word) for word in text.split(",") if word.isdecimal())

    def lists(self, *flags: str) -> set[str]:
        """Those of the flags under which kafka-topics --describe lists the partition."""
        return {
            flag for flag in flags if "Topic: t" in self._tools.run("topics", *self._at, "--describe", flag)
        }

    def until(self, leader: int, isr: Set[int], elr: Set[int] = frozenset()) -> Described:
        def is_so() -> bool:
            now = self.describe()
            return (now.leader, now.isr, now.elr) == (leader, isr, elr)

        until(is_so, what=lambda: f"expected leader {leader}, ISR {isr}, ELR {elr}: {self.describe()}")
        return self.describe()

    def elect(self, kind: str) -> str:
        told = self._tools.call(
            "leader-election", *self._at, "--election-type", kind, "--topic", "t", "--partition", 0
        )
        return told.stdout + told.stderr


FLAGS = (
    "--under-replicated-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
    "--unavailable-partitions",
)
UNDER_REPLICATED, UNDER_MIN_ISR, AT_MIN_ISR, UNAVAILABLE = FLAGS


def create(address: str) -> None:
    """Through another broker than the controller's: it forwards the request."""
    row = {"partition_index": 0, "broker_ids": REPLICAS}
    topic = {"name": "t", "num_partitions": -1, "replication_factor": -1, "assignments": [row]}
    with Connection(address) as connection:
        answer = connection.call(CREATE_TOPICS, 7, {"topics": [topic], "timeout": 30_000}).topics[0]
        assert answer.error_code == 0, answer.error_message


def values(tag: str) -> list[bytes]:
    return [b"%s-%d" % (tag.encode(), i) for i in range(20)]


@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
def test_who_leads_while_brokers_are_killed_and_come_back(
    tmp_path: Path, tools: Tools, kinds: Sequence[str]
) -> None:
    brokers = (Member(node_id, kind, "broker") for node_id, kind in zip(REPLICAS, kinds, strict=True))
    members = [Member(OURS, ODRADEK, "broker,controller"), *brokers]
    with mixed(tmp_path, members, SETTINGS) as cluster:
        cluster.start()
        create(cluster.nodes[REPLICAS[0]].address)
        judge = Judge(tools, cluster)
        judge.until(11, {11, 12, 13})
        produce(cluster.servers, "t", values("all"))
        assert judge.lists(*FLAGS) == set()
        assert "already" in judge.elect("preferred")

        cluster.kill(11)
        judge.until(12, {12, 13})
        assert judge.lists(*FLAGS) == {UNDER_REPLICATED, AT_MIN_ISR}
        assert "PreferredLeaderNotAvailableException" in judge.elect("preferred")

        cluster.kill(12)
        judge.until(13, {13}, {12})
        assert judge.lists(*FLAGS) == {UNDER_REPLICATED, UNDER_MIN_ISR}

        cluster.kill(13)
        assert judge.until(NOBODY, set(), {12, 13}).last_known_elr == {13}
        assert judge.lists(*FLAGS) == {UNDER_REPLICATED, UNDER_MIN_ISR, UNAVAILABLE}
        assert "EligibleLeadersNotAvailableException" in judge.elect("unclean")

        cluster.start(13)
        judge.until(NOBODY, set(), {12})
        assert "Successfully completed leader election (UNCLEAN)" in judge.elect("unclean")
        judge.until(13, {13})

        cluster.start(11, 12)
        judge.until(13, {11, 12, 13})
        assert "Successfully completed leader election (PREFERRED)" in judge.elect("preferred")
        judge.until(11, {11, 12, 13})
        assert read(cluster.servers, "t", 0, 20) == values("all")

        stopped_cleanly(judge, cluster)


def stopped_cleanly(judge: Judge, cluster: MixedCluster) -> None:
    """The last of them stays eligible, and so does the one before: each may lead again at once."""
    produce(cluster.servers, "t", values("again"))
    cluster.nodes[11].end(signal.SIGTERM)
    judge.until(12, {12, 13})
    cluster.nodes[12].end(signal.SIGTERM)
    judge.until(13, {13}, {12})
    cluster.nodes[13].end(signal.SIGTERM)
    judge.until(NOBODY, set(), {12, 13})
    cluster.start(12)
    judge.until(12, {12}, {13})
    cluster.start(13)
    judge.until(12, {12, 13})
    assert read(cluster.servers, "t", 0, 40) == values("all") + values("again")
