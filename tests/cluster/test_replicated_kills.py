"""Leaders are killed every few seconds while real clients write and read: nothing acknowledged is lost or
doubled. `make soak-replication` does it for ten minutes."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from odradek.client.blocking import BlockingClient
from tests.cluster.nodes import processes
from tests.cluster.test_kills import leader_of
from tests.support.recorded import judge, load
from tests.support.recorded_transactions import RecordedTransactions
from tests.support.replicas import create_replicated, states_of, until_in_sync

KILLS = int(os.environ.get("ODRADEK_SOAK_LEADER_KILLS", "3"))
GAP_S = 1.0
"""Of the shortest one: on a machine that does other work, too, a single one may be longer."""
NEXT_CONTROLLER_S = 4.0
"""Of the longest one. If the active controller was killed too, the next one is elected first."""
PARTITIONS = 3
REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
}

pytestmark = pytest.mark.timeout(120 + 20 * KILLS)


def test_no_acknowledged_record_is_lost_or_doubled_when_leaders_are_killed(tmp_path: Path) -> None:
    rng = Random(4711)
    gaps: list[tuple[str, float]] = []
    with ExitStack() as stack, processes(tmp_path, 3, REPLICATED) as cluster:
        servers = cluster.plan.bootstrap_servers
        with BlockingClient(servers) as client:
            create_replicated(client, "orders", PARTITIONS)
            with load(servers, "orders", PARTITIONS) as clients:
                transactions = RecordedTransactions(clients.operations, "t", servers, clients.tps)
                transactions.start()
                stack.callback(transactions.is_over.set)
                for kill in range(KILLS):
                    active = leader_of(client)
                    leaders = {state.leader for state in states_of(client, "orders").values()}
                    chosen = sorted(leaders - {active}) if kill % 3 != 2 else [active]
                    victim = rng.choice(chosen or sorted(leaders))
                    killed = time.monotonic()
                    cluster.kill(victim)
                    clients.await_acknowledgements(20)
                    gap = clients.longest_gap_s(killed)
                    gaps.append(("controller" if victim == active else "broker", round(gap, 2)))
                    cluster.restart(victim)
                    until_in_sync(client, "orders", "__consumer_offsets")
                    clients.consumers[-2].finish()  # one leaves the group, and another one joins
                    clients.consume()
                transactions.finish()
                judge(clients, cluster.folders)
    print(f"{clients.acknowledged()} acknowledged; {transactions.outcomes}")
    print(f"longest gaps after kills in s: {gaps}")
    assert transactions.committed and transactions.aborted
    assert min(gap for who, gap in gaps if who == "broker") < GAP_S, gaps
    assert max(gap for _, gap in gaps) < NEXT_CONTROLLER_S, gaps
