"""Two brokers of Apache Kafka under three of our controllers, while the active one is killed."""

import json
import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.mixed import APACHE, ODRADEK, Member, MixedCluster, mixed
from tests.support.mixed_clients import create, produce, read_as_group
from tests.support.peer_tools import Tools
from tests.support.quorum_tables import replication, status, until

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

CONTROLLERS, BROKERS = (1, 2, 3), (11, 12)
MEMBERS = [
    *(Member(node_id, ODRADEK, "controller") for node_id in CONTROLLERS),
    *(Member(node_id, APACHE, "broker") for node_id in BROKERS),
]
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "2",
    "group.initial.rebalance.delay.ms": "0",
}
COUNT = 50


def values(tag: str) -> set[bytes]:
    return {b"%s-%d" % (tag.encode(), i) for i in range(COUNT)}


def brokers(tools: Tools, cluster: MixedCluster) -> dict[int, str]:
    """Their states by id."""
    listed = tools.run(
        "cluster", "list-endpoints", "--bootstrap-server", cluster.servers, "--include-fenced-brokers"
    )
    return {int(row[0]): row[4] for row in (line.split() for line in listed.splitlines()[1:])}


def test_apache_brokers_outlive_the_active_controller(tmp_path: Path, tools: Tools) -> None:
    with mixed(tmp_path, MEMBERS, SETTINGS) as cluster:
        cluster.start()
        at = ("--bootstrap-server", cluster.servers)
        tools.run("topics", *at, "--create", "--topic", "first", "--partitions", 2, "--replication-factor", 2)
        produce(cluster.servers, "first", values("before"))
        assert read_as_group(cluster.servers, "g", ["first"], COUNT) == values("before")
        epochs, topics = [status(tools, at).epoch], ["first"]
        written: set[bytes] = set()
        gaps: list[float] = []
        for kill in range(2):
            leader = status(tools, at).leader_id
            killed = cluster.kill(leader)
            name = f"after-{kill}"
            create(cluster.servers, name, [BROKERS, BROKERS[::-1]])
            gaps.append(round(time.monotonic() - killed, 2))
            topics.append(name)
            for topic in ("first", name):
                produce(cluster.servers, topic, values(f"{topic}-{kill}"))
                written |= values(f"{topic}-{kill}")
            told = status(tools, at)
            assert told.leader_id in set(CONTROLLERS) - {leader}
            epochs.append(told.epoch)
            assert brokers(tools, cluster) == dict.fromkeys(BROKERS, "unfenced")
            cluster.start(leader)
            until(lambda leader=leader: replication(tools, at)[leader].lag == 0)
        print("seconds from a kill to the next answer:", gaps)
        assert sorted(set(epochs)) == epochs, "each kill began another epoch"
        assert read_as_group(cluster.servers, "g", topics, len(written)) == written
        described = tools.run("topics", *at, "--describe")
        assert set(re.findall(r"^Topic: (\S+)", described, re.M)) >= {*topics, "__consumer_offsets"}
        rows = replication(tools, at)
        assert {row.node_id for row in rows.values() if row.status == "Observer"} == set(BROKERS)
        assert {row.node_id for row in rows.values() if row.status != "Observer"} == set(CONTROLLERS)
        judge_log(tools, tmp_path, status(tools, at).leader_id)
        judge_shutdown(tools, cluster)


def judge_log(tools: Tools, folder: Path, node_id: int) -> None:
    """No broker had to register twice, and none was fenced."""
    log = folder / f"node-{node_id}" / "__cluster_metadata-0" / "00000000000000000000.log"
    dumped = tools.run("dump-log", "--cluster-metadata-decoder", "--files", log)
    records = [json.loads(text) for text in re.findall(r"payload: (\{.*\})$", dumped, re.M)]
    registered = [r["data"]["brokerId"] for r in records if r["type"] == "REGISTER_BROKER_RECORD"]
    assert sorted(registered) == list(BROKERS)
    changes = [r["data"] for r in records if r["type"] == "BROKER_REGISTRATION_CHANGE_RECORD"]
    assert sorted(c["brokerId"] for c in changes if c.get("fenced") == -1) == list(BROKERS)
    assert not [c for c in changes if c.get("fenced") == 1]


def judge_shutdown(tools: Tools, cluster: MixedCluster) -> None:
    """A controller that came to be active later lets a broker go, and its leaders move first."""
    going = cluster.nodes[BROKERS[0]]
    going.end(signal.SIGTERM)
    assert "The controller has asked us to exit controlled shutdown" in going.log
    until(lambda: brokers(tools, cluster).get(BROKERS[0]) == "fenced")
    described = tools.run("topics", "--bootstrap-server", cluster.servers, "--describe")
    assert set(re.findall(r"Leader: (\S+)", described)) == {str(BROKERS[1])}
