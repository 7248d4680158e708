"""A voter of ours beside two of Apache Kafka: it votes, follows, leads, is killed and comes back.

Who leads is left to the voters, and forced where it matters: a voter that was frozen while the others decided
something lacks a committed record, so it cannot be elected, and the one that can needs its vote.
"""

import re
from pathlib import Path

import pytest

from tests.support.mixed import APACHE, ODRADEK, Member, MixedCluster, mixed
from tests.support.mixed_clients import create, produce, read
from tests.support.peer_tools import Tools
from tests.support.quorum_tables import Status, replication, status, until

pytestmark = [pytest.mark.apache, pytest.mark.timeout(400)]

THEIRS, OURS, BROKER = (1, 2), 3, 11
MEMBERS = [
    *(Member(node_id, APACHE, "controller") for node_id in THEIRS),
    Member(OURS, ODRADEK, "controller"),
    Member(BROKER, ODRADEK, "broker"),
]
SETTINGS = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}


class Quorum:
    """The mixed cluster, and the topics that it answered for."""

    def __init__(self, cluster: MixedCluster, tools: Tools) -> None:
        self.cluster = cluster
        self.tools = tools
        self.at = ("--bootstrap-server", cluster.servers)
        self.topics: list[str] = []

    def decide(self, *topics: str) -> None:
        """One after the other: each is answered when a majority holds it.

        The first one may reach a frozen voter all the same, as the answer to a fetch that waits for it.
        """
        for topic in topics:
            create(self.cluster.servers, topic, [[BROKER]])
            self.topics.append(topic)

    def wait_for_leader(self, *among: int) -> Status:
        """It has committed in its epoch: it serves as controller."""
        seen: list[object] = []

        def leads() -> bool:
            told = self.tools.call("metadata-quorum", *self.at, "describe", "--status")
            seen[:] = [told]
            return told.code == 0 and status(self.tools, self.at).leader_id in among

        until(leads, what=lambda: (among, seen))
        return status(self.tools, self.at)

    def wait_for_follower(self, node_id: int) -> None:
        seen: list[object] = []

        def follows() -> bool:
            seen[:] = [replication(self.tools, self.at)]
            return replication(self.tools, self.at)[node_id].lag == 0

        until(follows, what=lambda: (node_id, seen))


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "recorded"])
def test_our_voter_beside_two_of_apache(tmp_path: Path, tools: Tools, is_static: bool) -> None:
    with mixed(tmp_path, MEMBERS, SETTINGS, is_static=is_static) as cluster:
        cluster.start()
        quorum = Quorum(cluster, tools)
        quorum.decide("by-all")
        ours_leads(quorum)
        ours_is_killed_and_follows(quorum)
        ours_elects(quorum)
        described = tools.run("topics", "--bootstrap-server", cluster.servers, "--describe")
        assert set(re.findall(r"^Topic: (\S+)", described, re.M)) == set(quorum.topics)
        produce(cluster.servers, "by-all", [b"value"])
        assert read(cluster.servers, "by-all", 0, 1) == [b"value"]
        judge_logs(quorum, tmp_path)


def ours_leads(quorum: Quorum) -> None:
    """One of Apache's lacks a record that the other one and ours have. The other one is killed."""
    gone, behind = THEIRS
    cluster = quorum.cluster
    cluster.freeze(behind)
    quorum.wait_for_leader(gone, OURS)
    quorum.decide("by-one-of-apache-and-ours", "by-these-two")
    cluster.kill(gone)
    cluster.thaw(behind)
    told = quorum.wait_for_leader(OURS)
    assert {voter["id"] for voter in told.voters} == {*THEIRS, OURS}
    quorum.decide("by-ours")
    quorum.wait_for_follower(behind)
    cluster.start(gone)
    quorum.wait_for_follower(gone)
    assert status(quorum.tools, quorum.at).leader_id == OURS


def ours_is_killed_and_follows(quorum: Quorum) -> None:
    cluster = quorum.cluster
    epoch = status(quorum.tools, quorum.at).epoch
    cluster.kill(OURS)
    assert quorum.wait_for_leader(*THEIRS).epoch > epoch
    quorum.decide("without-ours")
    cluster.start(OURS)
    quorum.wait_for_follower(OURS)


def ours_elects(quorum: Quorum) -> None:
    """Ours lacks a record that Apache's two have. The leader is killed: the other one needs our vote."""
    cluster = quorum.cluster
    leader = quorum.wait_for_leader(*THEIRS)
    (other,) = set(THEIRS) - {leader.leader_id}
    cluster.freeze(OURS)
    quorum.decide("by-apache", "by-apache-again")
    cluster.kill(leader.leader_id)
    cluster.thaw(OURS)
    assert quorum.wait_for_leader(other).epoch > leader.epoch
    quorum.decide("with-ours")
    quorum.wait_for_follower(OURS)


def judge_logs(quorum: Quorum, folder: Path) -> None:
    """Apache's and ours are the same, byte by byte, up to the shorter one's end."""
    leader = status(quorum.tools, quorum.at).leader_id
    name = "__cluster_metadata-0/00000000000000000000.log"
    ours, theirs = ((folder / f"node-{n}" / name).read_bytes() for n in (OURS, leader))
    length = min(len(ours), len(theirs))
    assert b"with-ours" in ours[:length]
    assert ours[:length] == theirs[:length]
    dumped = quorum.tools.run(
        "dump-log", "--cluster-metadata-decoder", "--files", folder / f"node-{OURS}" / name
    )
    leaders = {int(found) for found in re.findall(r'LeaderChange: \{"version":\d+,"leaderId":(\d+)', dumped)}
    assert {OURS, leader} <= leaders
    assert "isvalid: false" not in dumped
