"""A leader stands still for longer than its session and then goes on: as a zombie it acknowledges nothing
that its successor lacks, and what it took alone it gives up."""

import os
import signal
import time
from pathlib import Path

import pytest

from odradek.client.blocking import BlockingClient
from odradek.core.types import TopicPartition
from tests.cluster.nodes import processes
from tests.cluster.test_kills import leader_of
from tests.cluster.test_replicated_kills import REPLICATED
from tests.support.batches import batch
from tests.support.produce import PRODUCE, produce_values
from tests.support.quorum_tables import until
from tests.support.raw import Connection
from tests.support.recorded import IMPATIENT, IMPATIENT_S, Clients, judge, load
from tests.support.replicas import create_replicated, states_of, until_in_sync

PAUSES = int(os.environ.get("ODRADEK_SOAK_PAUSES", "1"))
SESSION_MS = int(os.environ.get("ODRADEK_SOAK_SESSION_MS", "3000"))
"""The soak takes the default, 9000."""
PARTITIONS = 3
ALL, LEADER_ALONE = -1, 1
SETTINGS = {
    **REPLICATED,
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "1000",
}

pytestmark = pytest.mark.timeout(120 + PAUSES * (SESSION_MS / 1000 * 2 + 30))


class ToTheZombie:
    """Requests that reach a leader while it stands still, and its answers when it goes on."""

    def __init__(self, clients: Clients, address: str, tp: TopicPartition, name: str) -> None:
        self._connection = Connection(address, timeout_s=60)
        self._clients, self._tp, self._name = clients, tp, name
        self._sent = []

    def send(self) -> None:
        """Its clients may ask for the followers, or trust it alone. What it took alone may get lost."""
        for number, acks in enumerate((ALL, LEADER_ALONE, ALL)):
            value = f"{self._name}-{number}".encode()
            send = self._clients.operations.send(f"{self._name}-{number}", self._tp, value)
            request = produce_values(
                self._tp.topic, batch([value]), partition=self._tp.partition, acks=acks, timeout_ms=5000
            )
            self._connection.send(PRODUCE, 9, request)
            self._sent.append((acks, send))

    def answers(self) -> list[tuple[int, str]]:
        """(acks, error) of each."""
        found = []
        with self._connection as connection:
            for acks, send in self._sent:
                try:
                    answer = connection.receive(PRODUCE, 9).responses[0].partition_responses[0]
                except ConnectionError:
                    found.append((acks, "closed"))
                    break
                found.append((acks, answer.error_code.name))
                if acks == ALL and answer.error_code.value == 0:
                    send.acknowledged(answer.base_offset)
        return found


def test_a_leader_that_was_stopped_acknowledges_nothing_that_its_successor_lacks(tmp_path: Path) -> None:
    gaps, answers = [], []
    with processes(tmp_path, 3, SETTINGS) as cluster:
        servers = cluster.plan.bootstrap_servers
        addresses = {node.node_id: node.address for node in cluster.plan.nodes}
        with BlockingClient(servers) as client:
            create_replicated(client, "orders", PARTITIONS)
        with load(servers, "orders", PARTITIONS, settings=IMPATIENT) as clients:
            for pause in range(PAUSES):
                with BlockingClient(servers) as client:
                    until_in_sync(client, "orders")
                    active = leader_of(client)
                    leaders = {p: state.leader for p, state in states_of(client, "orders").items()}
                partition = next(p for p, leader in leaders.items() if (leader == active) is (pause % 2 == 1))
                zombie = leaders[partition]
                asked = ToTheZombie(
                    clients, addresses[zombie], TopicPartition("orders", partition), f"zombie-{pause}"
                )
                stopped = time.monotonic()
                cluster.send(zombie, signal.SIGSTOP)
                try:
                    asked.send()
                    others = ",".join(a for n, a in addresses.items() if n != zombie)
                    with BlockingClient(others) as client:
                        until(lambda c=client, p=partition, z=zombie: states_of(c, "orders")[p].leader != z)
                    clients.await_acknowledgements(20)
                finally:
                    cluster.send(zombie, signal.SIGCONT)
                gaps.append(round(clients.longest_gap_s(stopped), 2))
                answers += asked.answers()
                with BlockingClient(servers) as client:
                    until_in_sync(client, "orders", "__consumer_offsets")
            judge(clients, cluster.folders)
    print(f"{clients.acknowledged()} acknowledged; longest gaps in s: {gaps}; answers of zombies: {answers}")
    assert max(gaps) < SESSION_MS / 1000 + 1 + IMPATIENT_S, gaps
