"""A voter of ours that nobody formatted, between two of Apache Kafka: they answer its questions."""

import asyncio
import shutil
from pathlib import Path

import pytest

from odradek.raft.first_questions import FirstQuestions, Presence
from odradek.raft.first_start import FormatAnswer
from odradek.raft.peers import Endpoint
from odradek.runtime.real import RealRuntime
from tests.support.mixed import APACHE, ODRADEK, Member, mixed
from tests.support.mixed_clients import create
from tests.support.peer_tools import Tools
from tests.support.quorum_tables import status, until

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

OURS = 3
MEMBERS = [
    Member(1, APACHE, "controller"),
    Member(2, APACHE, "controller"),
    Member(OURS, ODRADEK, "broker,controller"),
]
SETTINGS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


def asked(endpoint: Endpoint) -> tuple[FormatAnswer, Presence, Presence]:
    """Whether it is formatted, and what it says to nodes 1 and 9."""

    async def ask() -> tuple[FormatAnswer, Presence, Presence]:
        questions = FirstQuestions(RealRuntime(), 9, 5000)
        (answer,) = (await questions.ask_all({1: endpoint})).values()
        same, other = await questions.presence(endpoint, 1), await questions.presence(endpoint, 9)
        assert same is not None and other is not None
        return answer, same, other

    return asyncio.run(ask())


def test_an_unformatted_voter_waits_for_apaches_voters_and_votes_with_them(
    tmp_path: Path, tools: Tools
) -> None:
    with mixed(tmp_path, MEMBERS, SETTINGS, is_static=True) as cluster:
        directory = tmp_path / f"node-{OURS}"
        shutil.rmtree(directory)
        ours = cluster.nodes[OURS]
        ours.start()
        until(lambda: "Waiting for voters 1 at" in ours.log, what=lambda: ours.log)
        cluster.start(1, 2)
        ours.wait_ready()
        assert f"cluster {cluster.cluster_id} is in epoch" in ours.log
        until(lambda: not (directory / "__cluster_metadata-0" / "first-start").exists())
        host, _, port = cluster.controllers.split(",")[0].partition(":")
        answer, same, other = asked((host, int(port)))
        assert answer.formatted and answer.epoch >= 1
        assert (same.cluster_id, other.cluster_id) == (cluster.cluster_id, cluster.cluster_id)
        assert same.has_same_id and not other.has_same_id

        leader = status(tools, ("--bootstrap-controller", cluster.controllers)).leader_id
        assert leader in (1, 2), "a voter that has just caught up does not lead"
        cluster.kill(leader)
        create(cluster.servers, "after", [[OURS]])  # two voters of three: ours is needed
