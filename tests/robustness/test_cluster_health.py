"""`odradek cluster health` and `quorum` while nodes of a cluster are killed one after the other."""

import os
import re
import signal
import time

from tests.support.command import Outcome, odradek
from tests.support.local_cluster import LIMIT_S, up


def until_told(bootstrap: str, problem: str) -> Outcome:
    deadline = time.monotonic() + LIMIT_S
    while True:
        outcome = odradek("cluster", "health", "-b", bootstrap)
        if problem in outcome.stderr:
            return outcome
        assert time.monotonic() < deadline, outcome
        time.sleep(0.2)


def test_what_is_wrong_is_said_and_makes_the_exit_code() -> None:
    with up("-n", "3", "--port", "0", "--memory", "--seed-topic", "orders:2") as running:
        servers = running.until(r"^3 nodes ready: (\S+),")[1].split(",")
        active = int(running.until(r"^node (\d)  active controller")[1])
        first, second = (n for n in (1, 2, 3) if n != active)
        bootstrap = servers[active - 1]

        outcome = odradek("cluster", "health", "-b", bootstrap)
        assert outcome.code == 0, outcome
        assert outcome.text == (
            f"healthy: 3 brokers, controller {active} leads 3 voters, 2 partitions with a leader\n"
        )
        shown = odradek("cluster", "quorum", "-b", bootstrap, "-f", "csv").text.splitlines()
        assert shown[0] == "node,role,address,directory_id,log_end_offset,lag,lag_ms,fetched_ms_ago"
        assert [line.split(",")[1] for line in shown[1:]] == [
            "leader" if n == active else "voter" for n in (1, 2, 3)
        ]

        os.kill(running.node_processes()[first], signal.SIGKILL)
        outcome = until_told(bootstrap, f"broker {first} is fenced")
        assert outcome.code == 3
        outcome = until_told(bootstrap, f"voter {first} has not fetched")
        assert re.search(rf"node {first} at 127\.0\.0\.1:\d+ is down", outcome.stderr)

        os.kill(running.node_processes()[second], signal.SIGKILL)
        outcome = until_told(bootstrap, "there is no active controller")
        assert outcome.code == 3
        assert "next: start the controllers that are down" in outcome.stderr
        outcome = odradek("cluster", "quorum", "-b", bootstrap)
        assert (outcome.code, outcome.stderr) == (
            1,
            "error: there is no active controller\n  next: odradek cluster health\n",
        )
