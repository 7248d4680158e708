"""The questions of a first start, asked of Apache Kafka's controller: it answers both, and takes no harm."""

import asyncio
from pathlib import Path

import pytest

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.raft.first_questions import FirstQuestions
from odradek.runtime.ports import free_port
from odradek.runtime.real import RealRuntime
from tests.support import peer
from tests.support.static_quorum import HOST, SETTINGS
from tests.unit.metadata.stack import until

pytestmark = pytest.mark.skipif(peer.missing() is not None, reason=str(peer.missing()))


def test_apache_names_its_cluster_and_epoch_and_an_unformatted_broker_joins_it(tmp_path: Path) -> None:
    port = free_port()
    controller = (HOST, port + 100)
    directory = tmp_path / "apache"
    peer.start(directory, port)
    properties = {
        "node.id": "7",
        "process.roles": "broker",
        "listeners": f"PLAINTEXT://{HOST}:{free_port()}",
        "controller.quorum.bootstrap.servers": "{}:{}".format(*controller),
        "log.dirs": str(tmp_path / "odradek"),
        **SETTINGS,
    }

    async def story() -> None:
        questions = FirstQuestions(RealRuntime(), 7, 5000)
        (answer,) = (await questions.ask_all({1: controller})).values()
        assert answer.formatted
        assert answer.epoch >= 1
        presence = await questions.presence(controller, 7)
        assert presence is not None
        assert presence.cluster_id == answer.cluster_id
        assert not presence.has_same_id
        own = await questions.presence(controller, 1)
        assert own is not None
        assert own.has_same_id
        assert own.controllers == {1: controller}
        node = Node(NodeConfig.from_sources({}, properties)[0], RealRuntime())
        await node.start()
        try:
            assert node.cluster_id == answer.cluster_id
            await until(lambda: not node.metadata.image.brokers[7].fenced)
        finally:
            await node.stop()

    try:
        asyncio.run(asyncio.wait_for(story(), 60))
    finally:
        peer.stop(directory)
