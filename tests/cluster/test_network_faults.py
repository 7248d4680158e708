"""Nodes that cannot reach each other, in one direction or both, while clients reach them all."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from odradek.client.blocking import BlockingClient
from tests.cluster.links import Links, Way, linked
from tests.cluster.nodes import Processes
from tests.cluster.test_kills import leader_of
from tests.cluster.test_replicated_kills import REPLICATED
from tests.support.quorum_tables import until
from tests.support.recorded import IMPATIENT, Clients, judge, load
from tests.support.replicas import create_replicated, states_of, until_in_sync

ROUNDS = int(os.environ.get("ODRADEK_SOAK_CUTS", "0"))
"""Of random faults, after the ones below."""
PARTITIONS = 3
LAG_S, SESSION_S = 2.0, 3.0
SETTINGS = {
    **REPLICATED,
    "replica.lag.time.max.ms": str(int(LAG_S * 1000)),
    "broker.session.timeout.ms": str(int(SESSION_S * 1000)),
    "broker.heartbeat.interval.ms": "500",
}

pytestmark = pytest.mark.timeout(180 + 30 * ROUNDS)


class Story:
    def __init__(self, cluster: Processes, links: Links, client: BlockingClient, clients: Clients) -> None:
        self.cluster, self.links, self.client, self.clients = cluster, links, client, clients
        self.gaps: dict[str, float] = {}

    def pair(self) -> tuple[int, int]:
        """The two nodes that are not the active controller. Both lead a partition, and follow in others."""
        active = leader_of(self.client)
        first, second = (n for n in self.cluster.nodes if n != active)
        return first, second

    @contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """What is done inside stays until records were acknowledged in spite of it. Then all heals."""
        until_in_sync(self.client, "orders")
        self.clients.await_acknowledgements()
        began = time.monotonic()
        yield
        self.clients.await_acknowledgements(20)
        self.gaps[name] = round(self.clients.longest_gap_s(began), 2)
        self.links.heal()
        until_in_sync(self.client, "orders", "__consumer_offsets")

    def cut_off(self, node_id: int) -> None:
        """Until it leads nothing any more. Clients still reach it, and some believe it: they go on when it
        heals."""
        others = [n for n in self.cluster.plan.nodes if n.node_id != node_id]
        self.links.cut(*(w for n in others for w in (Way(n.node_id, node_id), Way(node_id, n.node_id))))
        with BlockingClient(",".join(n.address for n in others)) as client:
            until(lambda: node_id not in {state.leader for state in states_of(client, "orders").values()})
        self.links.heal()


def test_what_is_acknowledged_stays_while_nodes_cannot_reach_each_other(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster, links = stack.enter_context(linked(tmp_path, 3, SETTINGS))
        servers = cluster.plan.bootstrap_servers
        client = stack.enter_context(BlockingClient(servers))
        create_replicated(client, "orders", PARTITIONS)
        clients = stack.enter_context(load(servers, "orders", PARTITIONS, settings=IMPATIENT))
        story = Story(cluster, links, client, clients)
        with story.fault("a leader is cut off"):  # first, while every node leads a partition
            story.cut_off(story.pair()[0])
        with story.fault("connections reset"):
            links.reset()
        with story.fault("all is late"):
            links.delay(0.03, *(Way(a, b) for a in cluster.nodes for b in cluster.nodes))
        one, other = story.pair()
        with story.fault("requests and answers are lost"):
            links.cut(Way(one, other))
        rng = Random(4711)
        for number in range(ROUNDS):
            random_fault(story, rng, number)
        judge(clients, cluster.folders)
    print(f"{clients.acknowledged()} acknowledged; longest gaps in s: {story.gaps}")
    assert story.gaps["connections reset"] < SESSION_S + 2, "brokers are fenced, and unfenced again"
    assert story.gaps["all is late"] < 1
    assert story.gaps["requests and answers are lost"] < 1.5 * LAG_S + 1
    assert story.gaps["a leader is cut off"] < SESSION_S + 5


def random_fault(story: Story, rng: Random, number: int) -> None:
    """Whatever it is, what is acknowledged stays. It heals after seconds: some faults leave no majority."""
    ways = [Way(a, b) for a in story.cluster.nodes for b in story.cluster.nodes if a != b]
    chosen = rng.sample(ways, rng.randint(1, 4))
    if rng.random() < 0.3:
        story.links.delay(rng.uniform(0.01, 1.0), *chosen)
    else:
        story.links.cut(*chosen)
    if rng.random() < 0.2:
        story.links.reset()
    began = time.monotonic()
    time.sleep(rng.uniform(0.5, 8))
    story.links.heal()
    story.clients.await_acknowledgements(5)
    story.gaps[f"{number}: {chosen}"] = round(story.clients.longest_gap_s(began), 2)
    until_in_sync(story.client, "orders", "__consumer_offsets")
