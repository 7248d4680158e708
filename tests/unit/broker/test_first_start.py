"""Nodes that nobody formatted: a new quorum begins, a wiped voter asks and catches up, a broker joins."""

import asyncio
import logging
import shutil
from pathlib import Path

import pytest

from odradek.broker.node import Node
from odradek.cli.node.formatting import format_node
from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode
from odradek.metadata.formatting import STATIC, FormatError
from odradek.raft.first_questions import FirstQuestions
from odradek.raft.first_start import FormatAnswer
from odradek.raft.messages import VoteAnswer, VoteRequest
from odradek.raft.opening import FirstStartMark, read_mark, read_quorum_state
from odradek.raft.voters import ReplicaKey
from odradek.runtime.real import RealDisk, RealRuntime
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey
from tests.support.static_quorum import HOST, StaticQuorum, play
from tests.unit.metadata.stack import until


def is_formatted(quorum: StaticQuorum, node_id: int) -> bool:
    return (quorum.directory(node_id) / "meta.properties").exists()


def mark_of(quorum: StaticQuorum, node_id: int) -> FirstStartMark | None:
    return read_mark(RealDisk(), str(quorum.directory(node_id)))


async def asked(quorum: StaticQuorum, *node_ids: int) -> dict[int, FormatAnswer]:
    questions = FirstQuestions(RealRuntime(), 99, 2000)
    return await questions.ask_all({n: (HOST, quorum.ports[n - 1].controller) for n in node_ids})


def test_three_fresh_voters_become_a_cluster(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        nodes = await quorum.start(1, 2, 3)
        await until(lambda: quorum.leader() is not None)
        assert len({node.cluster_id for node in nodes}) == 1
        assert [mark_of(quorum, n) for n in (1, 2, 3)] == [None] * 3
        await until(lambda: all(len(node.metadata.image.controllers) == 3 for node in nodes))
        await quorum.stop(3)
        (again,) = await quorum.start(3)
        assert again.cluster_id == nodes[0].cluster_id

    play(tmp_path, story)


def test_a_voter_that_does_not_answer_is_waited_for_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(quorum: StaticQuorum) -> None:
        waiting = [quorum.node(1), quorum.node(2)]
        starts = [asyncio.ensure_future(node.start()) for node in waiting]
        address = f"voter 3 at {HOST}:{quorum.ports[2].controller}"
        with caplog.at_level(logging.WARNING):
            await until(lambda: sum(address in line for line in caplog.messages) >= 2)
        assert not is_formatted(quorum, 1) and not is_formatted(quorum, 2)
        assert await asked(quorum, 1, 2) == {n: FormatAnswer(False, 0) for n in (1, 2)}
        for node, start in zip(waiting, starts, strict=True):
            node.patience.give_up()
            with pytest.raises(asyncio.CancelledError):
                await start
        await quorum.start(1, 2, 3)  # ports and directories were given up
        await until(lambda: quorum.leader() is not None)

    play(tmp_path, story)


def test_no_voter_of_a_new_quorum_votes_before_all_are_formatted(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        for n in (1, 2):
            format_node(quorum.node(n).config, "the-cluster", STATIC._replace(mark=FirstStartMark.NEW))
        first = asyncio.ensure_future(quorum.start(1, 2))
        while len(await asked(quorum, 1, 2)) < 2:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)  # three times as long as a voter waits before it stands
        assert set((await asked(quorum, 1, 2)).values()) == {FormatAnswer(True, 0, "the-cluster")}
        assert mark_of(quorum, 1) is FirstStartMark.NEW
        (last,) = await quorum.start(3)
        assert last.cluster_id == "the-cluster"
        await first
        await until(lambda: quorum.leader() is not None)

    play(tmp_path, story)


def test_voters_that_an_operator_formatted_wait_for_nobody(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        for n in (1, 2):
            format_node(quorum.node(n).config, "the-cluster", STATIC)
        await quorum.start(1, 2)
        await until(lambda: quorum.leader() is not None)

    play(tmp_path, story)


def test_a_wiped_voter_asks_all_others_and_votes_when_it_has_caught_up(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        await quorum.start(1, 2, 3)
        await until(lambda: quorum.leader() is not None)
        cluster_id = quorum.running[1].cluster_id
        epoch = quorum.running[1].quorum.raft.epoch
        await quorum.stop(1, 2, 3)
        shutil.rmtree(quorum.directory(3))
        # A majority does not suffice: the other one may know of a higher epoch, in which this one voted.
        wiped = quorum.node(3)
        start = asyncio.ensure_future(wiped.start())
        await quorum.start(2)
        await asyncio.sleep(0.5)
        assert not is_formatted(quorum, 3)
        await quorum.start(1)
        await start
        quorum.running[3] = wiped
        assert wiped.cluster_id == cluster_id
        assert read_quorum_state(RealDisk(), str(quorum.directory(3))).leader_epoch >= epoch
        await until(lambda: mark_of(quorum, 3) is None)
        leader = quorum.leader()
        assert leader is not None and leader is not wiped
        assert wiped.quorum.raft.node.may_vote
        await quorum.stop(leader.config.node_id)
        await until(lambda: quorum.leader() is not None)

    play(tmp_path, story)


def vote(candidate: int, epoch: int, voter: int) -> VoteRequest:
    return VoteRequest(epoch, ReplicaKey(candidate), ReplicaKey(voter), epoch - 1, 1 << 40, False)


async def granted(node: Node, epoch: int) -> bool:
    answer = await node.quorum.raft.ask(vote(1, epoch, node.config.node_id))
    assert isinstance(answer, VoteAnswer)
    assert answer.error is ErrorCode.NONE
    return answer.granted


@pytest.mark.parametrize("mark", [None, FirstStartMark.WIPED])
def test_a_wiped_voter_grants_nothing_until_it_has_caught_up(
    tmp_path: Path, mark: FirstStartMark | None
) -> None:
    """Also after a restart. One without the mark grants its vote: it is the mark that matters."""

    async def story(quorum: StaticQuorum) -> None:
        formatted = STATIC._replace(mark=mark, epoch=5)
        format_node(quorum.node(3).config, "the-cluster", formatted)
        for epoch in (6, 7):
            (node,) = await quorum.start(3)
            assert node.quorum.raft.node.may_vote is (mark is None)
            assert await granted(node, epoch) is (mark is None)
            await quorum.stop(3)
            assert mark_of(quorum, 3) is mark

    play(tmp_path, story)


def test_a_broker_learns_the_cluster_id_from_a_controller(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        brokers = asyncio.ensure_future(quorum.start(4, 5))
        await asyncio.sleep(0.3)
        assert not is_formatted(quorum, 4)
        (voter, *_) = await quorum.start(1, 2, 3)
        for broker in await brokers:
            assert broker.cluster_id == voter.cluster_id

    play(tmp_path, story, brokers=2)


def test_a_broker_learns_it_from_a_bootstrap_server(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        (voter,) = await quorum.start(1)
        servers = f"{HOST}:{quorum.ports[0].controller}"
        (broker,) = await quorum.start(
            2, controller_quorum_voters="", controller_quorum_bootstrap_servers=servers
        )
        assert broker.cluster_id == voter.cluster_id
        await quorum.stop(2, 1)

    play(tmp_path, story, count=1, brokers=1)


def test_voters_of_different_clusters_are_joined_by_nobody(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        strangers = []
        for n in (1, 2):
            alone = StaticQuorum(tmp_path, 1)
            alone.voters = (n,)
            alone.ports = quorum.ports
            await alone.start(n)
            strangers.append(alone)
        with pytest.raises(FormatError, match=r"different clusters: voter 1 of .*, 2 of "):
            await quorum.node(3).start()
        for alone in strangers:
            await alone.stop(*alone.running)

    play(tmp_path, story)


def test_a_controller_that_is_no_voter_and_one_without_voters_are_refused(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        others = ",".join(quorum.quorum_voters.split(",")[1:])
        with pytest.raises(FormatError, match=r"node 1 is a controller and not among the voters \[2, 3\]"):
            await quorum.node(1, controller_quorum_voters=others).start()
        servers = ",".join(f"{HOST}:{port.controller}" for port in quorum.ports)
        with pytest.raises(FormatError, match="odradek cluster format"):
            await quorum.node(
                1, controller_quorum_voters="", controller_quorum_bootstrap_servers=servers
            ).start()

    play(tmp_path, story)


def test_requests_to_a_voter_that_waits_are_refused_for_now(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        node = quorum.node(1)
        start = asyncio.ensure_future(node.start())
        while not await asked(quorum, 1):
            await asyncio.sleep(0.02)
        connection = await BrokerConnection.open(
            RealRuntime(), HOST, quorum.ports[0].controller, client_id="test"
        )
        assert ApiKey.VOTE in connection.versions
        answer = await connection.send(ApiKey.VOTE, requests.vote.VoteRequest())
        assert answer.error_code == ErrorCode.BROKER_NOT_AVAILABLE
        answer = await connection.send(
            ApiKey.UNREGISTER_BROKER, requests.unregister_broker.UnregisterBrokerRequest(broker_id=1)
        )
        assert answer.error_code == ErrorCode.NOT_CONTROLLER
        connection.close()
        node.patience.give_up()
        with pytest.raises(asyncio.CancelledError):
            await start

    play(tmp_path, story)


def test_an_answer_that_names_no_epoch_is_no_answer(tmp_path: Path) -> None:
    """A broker listener is asked by mistake: it does not know the question, and leads no metadata log."""

    async def story(quorum: StaticQuorum) -> None:
        await quorum.start(1)
        await quorum.start(2)
        questions = FirstQuestions(RealRuntime(), 99, 2000)
        broker = (HOST, quorum.ports[1].broker)
        assert await questions.ask_all({2: broker}) == {}
        assert await questions.cluster_id(broker) is None
        (answer,) = (await asked(quorum, 1)).values()
        assert answer.formatted and answer.epoch > 0

    play(tmp_path, story, count=1, brokers=1)
