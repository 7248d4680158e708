"""Apache Kafka's tools for a quorum, over three of our nodes, their metadata log and a snapshot."""

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.client.blocking import BlockingClient
from odradek.core.types import uuid_to_text
from tests.cluster.nodes import Processes, processes
from tests.support import peer
from tests.support.peer_tools import Tools
from tests.support.quorum_tables import replication, status, until

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

METADATA_DIR = "__cluster_metadata-0"
FEATURES = {
    "eligible.leader.replicas.version": "1",
    "group.version": "1",
    "kraft.version": "1",
    "metadata.version": "4.3-IV0",
    "share.version": "0",
    "streams.version": "0",
    "transaction.version": "2",
}


class Quorum(NamedTuple):
    folder: Path
    cluster: Processes
    client: BlockingClient
    cluster_id: str

    @property
    def servers(self) -> tuple[str, str]:
        return "--bootstrap-server", self.cluster.plan.bootstrap_servers

    @property
    def controllers(self) -> tuple[str, str]:
        properties = self.cluster.plan.nodes[0].properties
        return "--bootstrap-controller", properties["controller.quorum.bootstrap.servers"]

    @property
    def directory_ids(self) -> dict[int, str]:
        voters = self.cluster.plan.voters
        assert voters is not None
        return {voter.id: uuid_to_text(voter.directory_id) for voter in voters.voters}

    @property
    def voter_addresses(self) -> dict[int, str]:
        return dict(enumerate(self.controllers[1].split(","), 1))

    def metadata_files(self, node_id: int, pattern: str) -> list[Path]:
        return sorted((self.folder / f"node-{node_id}" / METADATA_DIR).glob(pattern))

    def create(self, topic: str) -> None:
        self.client.call(self.client.admin.create_topics, {topic: 1}, replication_factor=1)


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Three nodes with a topic. A record is enough for the next snapshot."""
    folder = tmp_path_factory.mktemp("quorum")
    often = {
        "metadata.log.max.record.bytes.between.snapshots": "1",
        "broker.session.timeout.ms": "3000",  # one that was killed is let in again when its session is over
        "broker.heartbeat.interval.ms": "500",
    }
    with processes(folder, 3, often) as cluster, BlockingClient(cluster.plan.bootstrap_servers) as client:
        identity = (folder / "node-1" / "meta.properties").read_text()
        found = re.search(r"^cluster\.id=(.+)$", identity, re.M)
        assert found
        made = Quorum(folder, cluster, client, found[1])
        made.create("orders")
        yield made


def test_the_quorum_is_the_same_from_brokers_and_controllers(quorum: Quorum, tools: Tools) -> None:
    leaders = set()
    for at in (quorum.servers, quorum.controllers):
        told = status(tools, at)
        assert told.cluster_id == quorum.cluster_id
        leaders.add((told.leader_id, told.epoch))
        assert told.high_watermark > 10, "the records of three registrations and a topic"
        assert told.voters == [
            {
                "id": node_id,
                "directoryId": quorum.directory_ids[node_id],
                "endpoints": [f"CONTROLLER://{address}"],
            }
            for node_id, address in quorum.voter_addresses.items()
        ]
        assert told.observers == []
        rows = replication(tools, at)
        assert {node_id: row.directory_id for node_id, row in rows.items()} == quorum.directory_ids
        assert sorted(row.status for row in rows.values()) == ["Follower", "Follower", "Leader"]
        assert rows[told.leader_id].status == "Leader"
        assert rows[told.leader_id].log_end_offset >= told.high_watermark
    assert len(leaders) == 1, leaders
    for at in (quorum.servers, quorum.controllers):
        until(lambda at=at: all(row.lag == 0 for row in replication(tools, at).values()))


def test_features_and_the_cluster_are_described(quorum: Quorum, tools: Tools) -> None:
    brokers = {node.node_id: node.address for node in quorum.cluster.plan.nodes}
    for at, kind, expected in (
        (quorum.servers, "broker", brokers),
        (quorum.controllers, "controller", quorum.voter_addresses),
    ):
        lines = tools.run("features", *at, "describe").splitlines()
        levels = dict(
            found.groups()
            for line in lines
            if (found := re.match(r"Feature: (\S+) .*FinalizedVersionLevel: (\S+)", line))
        )
        assert levels == FEATURES
        assert tools.run("cluster", "cluster-id", *at).strip() == f"Cluster ID: {quorum.cluster_id}"
        head, *rows = (line.split() for line in tools.run("cluster", "list-endpoints", *at).splitlines())
        listed = [dict(zip(head, row, strict=True)) for row in rows]
        assert {int(row["ID"]): f"{row['HOST']}:{row['PORT']}" for row in listed} == expected
        assert {row["ENDPOINT_TYPE"] for row in listed} == {kind}
        assert {row.get("STATE") for row in listed} == {"unfenced" if kind == "broker" else None}


def test_every_broker_tells_its_versions(quorum: Quorum, tools: Tools) -> None:
    told = tools.run("broker-api-versions", *quorum.servers)
    shown = dict(re.findall(r"^(\S+) \(id: (\d+) rack: null isFenced: false\) -> \($", told, re.M))
    assert shown == {node.address: str(node.node_id) for node in quorum.cluster.plan.nodes}
    assert told.count("DescribeQuorum(55): 0 to 2 [usable: 2]") == 3
    assert told.count("DescribeCluster(60): 0 to 2 [usable: 2]") == 3


def test_storage_knows_the_directory_of_each_node(quorum: Quorum, tools: Tools) -> None:
    for node_id, directory_id in quorum.directory_ids.items():
        told = tools.run("storage", "info", "-c", quorum.folder / f"node-{node_id}.properties")
        identity = (
            f"cluster.id={quorum.cluster_id}, directory.id={directory_id}, node.id={node_id}, version=1"
        )
        assert identity in told
        assert "Found problem" not in told


def dump(tools: Tools, path: Path) -> str:
    told = tools.run("dump-log", "--cluster-metadata-decoder", "--files", path)
    assert not re.search(r"isvalid: false|exception|error|corrupt|mismatch", told, re.I), told
    return told


def records(told: str, kind: str) -> list[dict[str, Any]]:
    found = (json.loads(text) for text in re.findall(r"payload: (\{.*\})$", told, re.M))
    return [record["data"] for record in found if record["type"] == kind]


def test_the_log_has_the_voters_and_what_they_decided(quorum: Quorum, tools: Tools) -> None:
    """The leader's: a follower that began late has a snapshot in place of the first records."""
    leader = status(tools, quorum.servers)
    told = dump(tools, quorum.metadata_files(leader.leader_id, "*.log")[0])
    (changes, version, voters) = (
        [json.loads(text) for text in re.findall(rf"{name}:? (\{{.*\}})$", told, re.M)]
        for name in ("LeaderChange", "KRaftVersion", "KRaftVoters")
    )
    assert changes[-1]["leaderId"] == leader.leader_id
    assert [voter["voterId"] for voter in changes[-1]["voters"]] == [1, 2, 3]
    assert version[0]["kRaftVersion"] == 1
    assert {v["voterId"]: v["voterDirectoryId"] for v in voters[0]["voters"]} == quorum.directory_ids
    assert {record["controllerId"] for record in records(told, "REGISTER_CONTROLLER_RECORD")} == {1, 2, 3}
    assert {record["brokerId"] for record in records(told, "REGISTER_BROKER_RECORD")} == {1, 2, 3}
    assert "orders" in [record["name"] for record in records(told, "TOPIC_RECORD")]


def newest_snapshot(quorum: Quorum, folder: Path) -> Path | None:
    """A copy: the tools lock a directory, and the node deletes snapshots as it makes newer ones."""
    for path in reversed(quorum.metadata_files(1, "*.checkpoint")):
        with contextlib.suppress(FileNotFoundError):
            return Path(shutil.copy(path, folder))
    return None


def test_a_snapshot_has_the_voters_and_the_topic(quorum: Quorum, tools: Tools, tmp_path: Path) -> None:
    told, copy = "", None

    def has_topic() -> bool:
        nonlocal told, copy
        copy = newest_snapshot(quorum, tmp_path)
        told = "" if copy is None else dump(tools, copy)
        return "orders" in [record["name"] for record in records(told, "TOPIC_RECORD")]

    until(has_topic)
    assert "SnapshotHeader" in told and "SnapshotFooter" in told
    (voters,) = (json.loads(text) for text in re.findall(r"KRaftVoters (\{.*\})$", told, re.M))
    assert {v["voterId"]: v["voterDirectoryId"] for v in voters["voters"]} == quorum.directory_ids
    (topic,) = (record for record in records(told, "TOPIC_RECORD") if record["name"] == "orders")

    seen = peer.shell_shows(f"/image/topics/byId/{topic['topicId']}/0", copy, "find", "/image").split()
    assert {f"/image/cluster/{kind}/{n}" for kind in ("brokers", "controllers") for n in (1, 2, 3)} <= set(
        seen
    )


def test_a_voter_that_is_down_lags_until_it_is_back(quorum: Quorum, tools: Tools) -> None:
    rows = replication(tools, quorum.servers)
    down = next(row.node_id for row in rows.values() if row.status == "Follower")
    quorum.cluster.kill(down)
    quorum.create("while-it-is-down")
    behind = replication(tools, quorum.controllers)[down]
    assert behind.lag >= 2, "the records of a topic and its partition"
    assert behind.log_end_offset >= rows[down].log_end_offset
    assert status(tools, quorum.servers).max_follower_lag >= behind.lag
    quorum.cluster.restart(down)
    until(lambda: replication(tools, quorum.controllers)[down].lag == 0)
