"""Our broker beside one of Apache Kafka, whose controller it observes: static voters and recorded ones."""

from pathlib import Path

import pytest

from tests.support.mixed import APACHE, ODRADEK, Member, mixed
from tests.support.mixed_clients import create, produce, read, read_as_group, transact
from tests.support.peer_tools import Tools
from tests.support.quorum_tables import replication, status, until

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

THEIRS, OURS = 1, 11
MEMBERS = [Member(THEIRS, APACHE, "broker,controller"), Member(OURS, ODRADEK, "broker")]
SETTINGS = {
    **{f"{name}.num.partitions": "2" for name in ("offsets.topic", "transaction.state.log")},
    **{f"{name}.replication.factor": "1" for name in ("offsets.topic", "transaction.state.log")},
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "3000",  # one that was killed is let in again when its session is over
    "broker.heartbeat.interval.ms": "500",
}


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "recorded"])
def test_our_broker_serves_under_a_controller_of_apache(
    tmp_path: Path, tools: Tools, is_static: bool
) -> None:
    with mixed(tmp_path, MEMBERS, SETTINGS, is_static=is_static) as cluster:
        cluster.start()
        at = ("--bootstrap-controller", cluster.controllers)
        servers = cluster.servers
        create(servers, "orders", [[OURS], [THEIRS]])
        first = [b"%d" % i for i in range(50)]
        for partition in (0, 1):
            produce(servers, "orders", first, partition=partition)
            assert read(servers, "orders", partition, 50) == first
        assert read_as_group(servers, "g", ["orders"], 100) == set(first)
        for name in ("x", "y", "z"):  # coordinators on both sides
            transact(servers, name, [("orders", 0), ("orders", 1)], b"lost", commits=False)
            transact(servers, name, [("orders", 0), ("orders", 1)], name.encode(), commits=True)
        for partition in (0, 1):
            assert read(servers, "orders", partition, 53) == [*first, b"x", b"y", b"z"]
        epoch = judge(tools, at, cluster.cluster_id)

        cluster.kill(THEIRS)
        produce(cluster.nodes[OURS].address, "orders", [b"while it is away"], partition=0)
        cluster.start(THEIRS)
        create(servers, "after", [[OURS]])
        produce(servers, "after", first)
        assert read(servers, "after", 0, 50) == first
        assert read(servers, "orders", 0, 54)[-1] == b"while it is away"
        assert judge(tools, at, cluster.cluster_id) > epoch


def judge(tools: Tools, at: tuple[str, str], cluster_id: str) -> int:
    """The epoch of the quorum, in which Apache's controller leads and our broker follows as an observer."""
    told = status(tools, at)
    assert (told.cluster_id, told.leader_id) == (cluster_id, THEIRS)
    assert [voter["id"] for voter in told.voters] == [THEIRS]
    assert [observer["id"] for observer in told.observers] == [OURS]
    assert replication(tools, at)[OURS].status == "Observer"
    until(lambda: replication(tools, at)[OURS].lag == 0)
    listed = tools.run("cluster", "list-endpoints", *at)
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [str(THEIRS)]
    return told.epoch
