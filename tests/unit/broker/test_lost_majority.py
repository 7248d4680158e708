"""A quorum that loses its majority and gets it back, and one whose clocks are an hour apart."""

import asyncio
from pathlib import Path

import pytest

from odradek.broker.node import Node
from odradek.client import Admin, Client
from odradek.core.errors import KafkaError
from odradek.runtime.api import Clock
from odradek.runtime.real import RealRuntime
from tests.support.static_quorum import HOST, StaticQuorum, play
from tests.unit.metadata.stack import until

HOUR_MS = 3_600_000


def test_a_majority_that_is_lost_and_regained_loses_no_decision(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        await quorum.start(1, 2, 3)
        (broker,) = await quorum.start(4)
        async with Client(f"{HOST}:{quorum.ports[3].broker}") as client:
            await Admin(client).create_topics({"before": 1}, replication_factor=1)
            await until(lambda: quorum.leader() is not None)
            leader = quorum.leader()
            assert leader is not None
            epoch = leader.quorum.raft.epoch
            await quorum.stop(*(n for n in quorum.voters if n != leader.config.node_id))
            await until(lambda: not leader.quorum.raft.is_leader)
            with pytest.raises((KafkaError, TimeoutError)):
                await asyncio.wait_for(Admin(client).create_topics({"meanwhile": 1}, replication_factor=1), 1)
            await quorum.start(*(n for n in quorum.voters if n not in quorum.running))
            await until(lambda: quorum.leader() is not None)
            await Admin(client).create_topics({"after": 1}, replication_factor=1)
        found = quorum.leader()
        assert found is not None
        assert found.quorum.raft.epoch > epoch
        names = set(broker.metadata.image.topics_by_name)
        assert {"before", "after"} <= names

    play(tmp_path, story, brokers=1)


class SkewedClock:
    def __init__(self, clock: Clock, by_ms: int) -> None:
        self._clock = clock
        self._by_ms = by_ms

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._by_ms

    def steady_ms(self) -> int:
        return self._clock.steady_ms()


class SkewedQuorum(StaticQuorum):
    def node(self, node_id: int, **changed: str) -> Node:
        config = super().node(node_id, **changed).config
        runtime = RealRuntime()
        runtime.clock = SkewedClock(runtime.clock, (node_id - 2) * HOUR_MS)
        return Node(config, runtime)


def test_clocks_an_hour_apart_fence_nobody_and_elect_a_controller(tmp_path: Path) -> None:
    async def story(quorum: StaticQuorum) -> None:
        await quorum.start(1, 2, 3)
        (broker,) = await quorum.start(4)
        async with Client(f"{HOST}:{quorum.ports[3].broker}") as client:
            for name in ("first", "second"):
                await Admin(client).create_topics({name: 1}, replication_factor=1)
                leader = quorum.leader()
                assert leader is not None
                if name == "first":
                    await quorum.stop(leader.config.node_id)
            epoch = broker.lifecycle.broker_epoch
            await asyncio.sleep(2.5)  # longer than a session
        assert not broker.metadata.image.brokers[4].fenced
        assert broker.metadata.image.brokers[4].epoch == epoch
        assert set(broker.metadata.image.topics_by_name) == {"first", "second"}

    play(tmp_path, story, brokers=1, kind=SkewedQuorum)
