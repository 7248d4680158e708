"""Nodes that cannot be together: a refusal to start that names the cause, or Kafka's error on the wire."""

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from odradek.broker.lifecycle import RegistrationError
from odradek.broker.node import Node
from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import properties_text
from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import uuid_to_text
from odradek.metadata.formatting import OBSERVER, STATIC
from odradek.raft.asking import Asker
from odradek.raft.messages import FetchAnswer, FetchRequest, Request, VoteAnswer, VoteRequest
from odradek.raft.opening import QuorumError
from odradek.raft.quorum_state import QuorumState, format_quorum_state
from odradek.raft.voters import ReplicaKey
from odradek.runtime.eager import new_event_loop
from odradek.runtime.real import RealRuntime
from tests.cluster.nodes import config_of, formatted, nodes_on_this_loop
from tests.support.command import odradek
from tests.support.static_quorum import HOST, StaticQuorum, play
from tests.unit.metadata.stack import until

OTHER_DIRECTORY = UUID(int=4711)


async def ask(quorum: StaticQuorum, node_id: int, request: Request, cluster_id: str | None = None) -> Any:
    """What a controller answers on its listener."""
    connection = await BrokerConnection.open(
        RealRuntime(), HOST, quorum.ports[node_id - 1].controller, client_id="test"
    )
    try:
        asker = Asker(cluster_id, "CONTROLLER", max_fetch_bytes=1 << 20, max_snapshot_bytes=1 << 20)
        return await asker.ask(connection, request, 5000)
    finally:
        connection.close()


def of_another_cluster(quorum: StaticQuorum, node_id: int) -> Node:
    node = quorum.node(node_id)
    format_node(node.config, "another-cluster", STATIC)
    return node


def test_a_node_of_another_cluster_is_refused_and_both_clusters_are_named(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        voter, broker = of_another_cluster(quorum, 3), of_another_cluster(quorum, 4)
        for n in (1, 2):
            format_node(quorum.node(n).config, "the-cluster", STATIC)
        await quorum.start(1, 2)
        for node in (voter, broker):
            with pytest.raises(
                QuorumError,
                match=rf"controller at {HOST}:\d+ belongs to cluster the-cluster, .* to cluster another-cl",
            ):
                await node.start()
        with pytest.raises(KafkaError) as refused:
            await ask(quorum, 1, FetchRequest(ReplicaKey(3), 0, 0, 0, 0), "another-cluster")
        assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID

    play(tmp_path, story, brokers=1)


def test_a_second_broker_with_the_same_id_is_refused_with_the_address_of_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(quorum: StaticQuorum) -> None:
        await quorum.start(1)
        await quorum.start(2)
        same_id = {"node.id": "2", "initial.broker.registration.timeout.ms": "600"}
        second = quorum.node(3, **same_id)
        first = f"{HOST}:{quorum.ports[1].broker}"
        reason = f"another broker is registered with node.id 2, at {first}, and its session has not ended"
        with pytest.raises(RegistrationError, match=reason), caplog.at_level(logging.WARNING):
            await second.start()
        assert caplog.messages.count(f"Cannot register yet: {reason}") == 1
        broker = quorum.running[2]
        assert not broker.metadata.image.brokers[2].fenced

    play(tmp_path, story, count=1, brokers=2)


@pytest.mark.parametrize("is_formatted", [True, False])
def test_a_second_voter_with_the_same_id_is_refused_with_the_address_of_the_first(
    tmp_path: Path, is_formatted: bool
) -> None:
    async def story(quorum: StaticQuorum) -> None:
        nodes = await quorum.start(1, 2, 3)
        await until(lambda: quorum.leader() is not None)
        elsewhere = f"CONTROLLER://{HOST}:{quorum.ports[2].broker}"
        second = quorum.node(3, listeners=elsewhere, log_dirs=str(tmp_path / "second"))
        if is_formatted:
            format_node(second.config, nodes[0].cluster_id, STATIC)
        first = f"{HOST}:{quorum.ports[2].controller}"
        with pytest.raises(QuorumError, match=f"node 3 runs already, at {first}"):
            await second.start()
        await quorum.stop(3)
        await quorum.start(3)

    play(tmp_path, story)


def test_another_directory_under_a_live_voters_id_is_refused_with_its_address(tmp_path: Path) -> None:
    """kraft.version 1: the newcomer knows bootstrap servers, and hears from them where its id runs."""

    async def story() -> None:
        plan = formatted(tmp_path, 3)
        async with nodes_on_this_loop(plan) as nodes:
            await until(lambda: all(len(node.metadata.image.controllers) == 3 for node in nodes))
            (voter,) = [node for node in nodes if node.config.node_id == 3]
            first = voter.config.controller_listeners[0]
            spare = StaticQuorum(tmp_path, 1)
            config = config_of(
                {
                    **plan.nodes[2].properties,
                    "process.roles": "controller",
                    "listeners": f"CONTROLLER://{HOST}:{spare.ports[0].controller}",
                    "controller.quorum.bootstrap.servers": ",".join(
                        f"{HOST}:{node.config.controller_listeners[0].port}" for node in nodes[:2]
                    ),
                    "log.dirs": str(tmp_path / "second"),
                }
            )
            format_node(config, nodes[0].cluster_id, OBSERVER)
            with pytest.raises(QuorumError, match=f"node 3 runs already, at {first.host}:{first.port}"):
                await Node(config, RealRuntime()).start()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(asyncio.wait_for(story(), 60))


def test_other_voters_than_those_that_voted_before_are_refused(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        nodes = await quorum.start(1, 2, 3)
        await until(lambda: all(node.quorum.raft.leader_id in quorum.voters for node in nodes))
        await quorum.stop(1, 2, 3)
        voters = quorum.quorum_voters + f",4@{HOST}:{quorum.ports[0].broker}"
        with pytest.raises(
            QuorumError, match=r"voter set: \[1, 2, 3, 4\] is different from .*quorum-state: \[1, 2, 3\]"
        ):
            await quorum.node(1, controller_quorum_voters=voters).start()

    play(tmp_path, story)


def test_other_voters_than_those_of_the_quorum_that_runs_are_refused(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        first, second, third = quorum.quorum_voters.split(",")
        for n in (1, 2, 3):
            format_node(quorum.node(n).config, "the-cluster", STATIC)
        nodes = await quorum.start(1, 2)
        await until(lambda: any(node.quorum.is_active for node in nodes))
        for voters, named in (
            (f"{first},{second},{third},4@{HOST}:1", "[1, 2, 3, 4]"),
            (f"{first},{second},4@{HOST}:1,{third},5@{HOST}:1", "[1, 2, 3, 4, 5]"),
        ):
            reason = rf"leads has the voters \[1, 2, 3\], and .* names {re.escape(named)}"
            with pytest.raises(QuorumError, match=reason):
                await quorum.node(3, controller_quorum_voters=voters).start()
        await quorum.start(3)

    play(tmp_path, story)


def test_the_command_prints_such_a_refusal_in_one_line(tmp_path: Path) -> None:
    quorum = StaticQuorum(tmp_path)
    format_node(quorum.node(1).config, "the-cluster", STATIC)
    path = quorum.directory(1) / "__cluster_metadata-0" / "quorum-state"
    path.write_bytes(format_quorum_state(QuorumState(leader_epoch=3), 0, (1, 2)))
    file = tmp_path / "server.properties"
    file.write_text(properties_text(quorum.properties(1)))
    outcome = odradek("start", "--config", str(file), "--http", "off")
    assert outcome.code == 1
    last = outcome.stderr.splitlines()[-1]
    assert "Configured voter set: [1, 2, 3] is different from the voter set read from" in last


def test_the_quorum_state_of_another_voter_is_refused(tmp_path: Path) -> None:
    plan = formatted(tmp_path, 3)
    state = {
        "leaderId": -1,
        "leaderEpoch": 4,
        "votedId": 2,
        "votedDirectoryId": uuid_to_text(OTHER_DIRECTORY),
        "data_version": 1,
    }
    path = tmp_path / "node-2" / "__cluster_metadata-0" / "quorum-state"
    path.write_text(json.dumps(state))

    async def story() -> None:
        node = Node(config_of(plan.nodes[1].properties), RealRuntime())
        with pytest.raises(QuorumError, match="quorum-state is of another voter"):
            await node.start()

    asyncio.run(story())


@pytest.mark.parametrize("kept", [0, 50, -1])
def test_a_snapshot_that_is_cut_short_is_refused_by_its_name(tmp_path: Path, kept: int) -> None:
    plan = formatted(tmp_path, 3)
    path = tmp_path / "node-2" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    path.write_bytes(path.read_bytes()[:kept])

    async def story() -> None:
        node = Node(config_of(plan.nodes[1].properties), RealRuntime())
        with pytest.raises(QuorumError, match=f"{path.name} is damaged"):
            await node.start()

    asyncio.run(story())


def test_stale_and_future_epochs_and_a_fetch_beyond_the_end_get_kafkas_errors(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        nodes = await quorum.start(1, 2, 3)
        await until(lambda: all(node.quorum.raft.leader_id in quorum.voters for node in nodes))
        leader = quorum.leader()
        assert leader is not None
        epoch, node_id = leader.quorum.raft.epoch, leader.config.node_id
        other = next(n for n in (1, 2, 3) if n != node_id)

        async def fetch(asked: int, epoch: int, offset: int, last_epoch: int) -> FetchAnswer:
            request = FetchRequest(ReplicaKey(99), epoch, offset, last_epoch, 0)
            answer = await ask(quorum, asked, request)
            assert isinstance(answer, FetchAnswer)
            assert (answer.leader_id, answer.leader_epoch) == (node_id, epoch_now)
            return answer

        epoch_now = epoch
        assert (await fetch(node_id, epoch - 1, 0, 0)).error is ErrorCode.FENCED_LEADER_EPOCH
        assert (await fetch(node_id, epoch + 1, 0, 0)).error is ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await fetch(other, epoch, 0, 0)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        beyond = await fetch(node_id, epoch, 1 << 40, epoch)
        assert beyond.error is ErrorCode.NONE
        assert beyond.diverging is not None
        assert beyond.diverging.epoch == epoch
        assert beyond.diverging.end_offset <= leader.quorum.raft.log_end_offset
        stale = VoteRequest(epoch - 1, ReplicaKey(other), ReplicaKey(node_id), 0, 1 << 40, pre_vote=True)
        answer = await ask(quorum, node_id, stale)
        assert isinstance(answer, VoteAnswer)
        assert answer.error is ErrorCode.FENCED_LEADER_EPOCH
        assert not answer.granted

    play(tmp_path, story)
