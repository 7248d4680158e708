"""SIGKILL at every step of the protocol, each proven reached: nothing lost, twice or left open.

Starting a driver takes most of the time, so one query is killed at all steps, one after another.
ODRADEK_SOAK_ROUNDS plays everything several times.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from odradek.client.blocking import BlockingClient
from odradek.runtime.ports import free_port
from odradek.spark.ledger.ledger import Stream
from odradek.spark.ledger.ledger_log import LedgerLog
from tests.spark.barred import STEPS
from tests.spark.clusters import standalone
from tests.spark.conftest import check_nothing_open, read_committed
from tests.spark.driver import RUN_S, Driver, kill, parent
from tests.support.command import odradek
from tests.support.node import NodeProcess, running
from tests.support.topics import create_topic

EXIT_FINDING = 3
RECORDS = 20_000
PARTITIONS = 2
ROUNDS = int(os.environ.get("ODRADEK_SOAK_ROUNDS", "1"))

EXECUTORS_FIRST = {
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.python.task.killTimeout": "120s",  # who is held stays alive, and goes on when it is let go
}
"""No task begins before all executors are there, so that each of them has one."""

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
}

LEFT = {"written": "undecided", "after the decision": "decided"}
"""What is said of transactions that a driver has left open which was killed there."""

pytestmark = [pytest.mark.timeout(900), pytest.mark.parametrize("turn", range(ROUNDS))]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with running(tmp_path / "data", "--port", str(free_port())) as started:
        for name in ("in", "out"):
            create_topic(started.bootstrap, name, PARTITIONS, {})
        producer = confluent_kafka.Producer({"bootstrap.servers": started.bootstrap})
        for i in range(RECORDS):
            producer.produce("in", key=str(i), value=str(i))
        assert producer.flush(30) == 0
        yield started


def strike(node: NodeProcess) -> None:
    """kill -9 of the broker, which comes back under the same address."""
    node.kill()
    node.restart()


def check_so_far(node: NodeProcess, topic: str = "out") -> Counter[int]:
    found = Counter(int(message.value() or b"") for message in read_committed(node.bootstrap, topic))
    twice = [number for number, count in found.items() if count > 1]
    assert not twice, f"{len(twice)} records are there twice, {twice[0]} among them"
    return found


def wait_for_more(folder: Path, driver: Driver) -> None:
    """Until Spark has noted a batch as committed that it had not. The query is not done by then: it is looked
    at often, and has batches left."""
    commits = folder / "checkpoint" / "commits"
    before = _last_batch(commits)
    deadline = time.monotonic() + RUN_S
    while _last_batch(commits) <= before:
        assert time.monotonic() < deadline and driver.process.poll() is None, driver.log()
        time.sleep(0.01)


def _last_batch(commits: Path) -> int:
    return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)


def event_log(folder: Path) -> dict[str, str]:
    (folder / "events").mkdir()
    settings = {"enabled": "true", "dir": f"file://{folder}/events", "compress": "false"}
    return {f"spark.eventLog.{name}": value for name, value in settings.items()}


def events(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """What Spark says that it did."""
    for path in folder.glob("events/**/events_*"):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == kind:
                yield event


def check(node: NodeProcess, topic: str = "out") -> None:
    found = check_so_far(node, topic)
    missing = [number for number in range(RECORDS) if number not in found]
    assert not missing, f"{len(missing)} records are missing, {missing[0]} among them"
    assert len(found) == RECORDS
    check_nothing_open(node.bootstrap)


def hanging(node: NodeProcess, folder: Path) -> str:
    """Whose the transactions are that stay open until the query is started again."""
    told = odradek("txn", "hanging", "out", "--older-than", "0s", "-b", node.bootstrap, "-f", "json")
    assert told.code == EXIT_FINDING
    query = json.loads((folder / "checkpoint/metadata").read_text())["id"]
    rows = json.loads(told.text)
    assert all(row["of"].startswith(f"Spark query {query}/sink, run ") for row in rows), rows
    assert "next: start the query again" in told.stderr
    return ",".join(row["of"] for row in rows)


def check_a_dead_run_is_swept(node: NodeProcess, folder: Path) -> None:
    """What the run before has left is open still, and what this one has decided is complete."""
    decided, states = participants(node, folder)
    left = [name for name, state in states.items() if state == "Ongoing"]
    assert left
    assert not {name.split(".")[3] for name in left} & {name.split(".")[3] for name in decided}


def check_one_has_ended(node: NodeProcess, folder: Path) -> None:
    decided, states = participants(node, folder)
    assert sorted(states[name] for name in decided) == ["CompleteCommit", "Ongoing"]


def participants(node: NodeProcess, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Those of the last decision, and the states of all transactional ids."""
    query = json.loads((folder / "checkpoint/metadata").read_text())["id"]
    with BlockingClient(node.bootstrap) as client:
        entry = client.run(LedgerLog(client.client).entry(Stream(query, "sink")))
        listed = client.call(client.admin.list_transactions)
    assert entry is not None
    states = {s.transactional_id: s.transaction_state for found in listed.values() for s in found}
    return [p.transactional_id for p in entry.decision.participants], states


AT_THE_KILL = {"between the ends": check_one_has_ended, "in the sweep": check_a_dead_run_is_swept}


def test_a_driver_that_is_killed_at_every_step_goes_on_as_if_nothing_had_been(
    node: NodeProcess, tmp_path: Path, turn: int
) -> None:
    before = ""
    for step in STEPS:
        if before == "after the decision":
            driver = finishes_first(node, tmp_path)
            driver.arm(step)
        else:
            driver = Driver(node.bootstrap, tmp_path, step)
        driver.reached()
        AT_THE_KILL.get(step, lambda *_: None)(node, tmp_path)
        driver.kill()
        check_so_far(node)
        if step in LEFT:
            assert LEFT[step] in hanging(node, tmp_path)
        before = step
    last = Driver(node.bootstrap, tmp_path)
    assert last.finish() == 0, last.log()
    check(node)


def finishes_first(node: NodeProcess, folder: Path) -> Driver:
    """A driver after one that had decided: it is held where it has read the first rows, and what was decided
    is committed by then. (Readers may wait behind what other dead runs have left, until it decides.)"""
    decided, states = participants(node, folder)
    assert {states[name] for name in decided} == {"Ongoing"}
    driver = Driver(node.bootstrap, folder, "source read")
    driver.reached()
    again, states = participants(node, folder)
    assert again == decided
    assert {states[name] for name in decided} == {"CompleteCommit"}
    return driver


def test_writes_of_a_program_that_is_killed_are_there_once(
    node: NodeProcess, tmp_path: Path, turn: int
) -> None:
    """A job with an idempotencyKey, and then a query with foreachBatch. Killed when the job is decided and
    not committed, when it is committed, and when the first batch is, of which Spark does not know yet."""
    create_topic(node.bootstrap, "each", PARTITIONS, {})

    def start(step: str | None) -> Driver:
        return Driver(node.bootstrap, tmp_path, step, program=("writing",))

    driver = start("after the decision")
    driver.reached()
    assert not check_so_far(node)
    driver.kill()
    driver = start("committed")
    driver.reached()
    driver.kill()
    check(node)
    driver = start("committed")
    driver.reached()
    driver.arm("committed")
    driver.reached()
    assert not list((tmp_path / "each/commits").glob("[0-9]*"))
    driver.kill()
    assert check_so_far(node, "each")
    last = start(None)
    assert last.finish() == 0, last.log()
    for topic in ("out", "each"):
        check(node, topic)


def test_tasks_that_are_killed_are_tried_again_and_a_broker_is_waited_for(
    node: NodeProcess, tmp_path: Path, turn: int
) -> None:
    driver = Driver(node.bootstrap, tmp_path, "source read")
    for step in ("source read", "write begun", "written"):
        driver.arm(step)
        kill(driver.reached())
    for step in ("written", "before the decision", "between the ends"):
        driver.arm(step)
        driver.reached()
        strike(node)
        driver.release()
    assert driver.finish() == 0, driver.log()
    check(node)


def test_a_commit_that_is_killed_ends_the_query_and_the_next_one_goes_on(
    node: NodeProcess, tmp_path: Path, turn: int
) -> None:
    """Not the driver dies, but the process in which it commits: the query fails, and is started again."""
    driver = Driver(node.bootstrap, tmp_path, "after the decision")
    kill(driver.reached())
    assert driver.finish() != 0
    again = Driver(node.bootstrap, tmp_path)
    assert again.finish() == 0, again.log()
    check(node)


def test_an_executor_that_is_lost_is_replaced(node: NodeProcess, tmp_path: Path, turn: int) -> None:
    driver = Driver(node.bootstrap, tmp_path, "written", master="local-cluster[2,1,1024]")
    executor = parent(parent(driver.reached()))
    assert "CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_text()
    kill(executor)
    assert driver.finish() == 0, driver.log()
    check(node)


def test_of_a_task_and_its_speculative_copy_one_is_committed(
    node: NodeProcess, tmp_path: Path, turn: int
) -> None:
    """The first attempt is held, once when it has written all, once before it writes: its copy wins. It is
    let go when the batch is committed, and finds its transaction ended."""
    settings = {**EXECUTORS_FIRST, **SPECULATION, **event_log(tmp_path)}
    with standalone(tmp_path, ("127.0.0.2", "127.0.0.3")) as master:
        driver = Driver(node.bootstrap, tmp_path, master=master, settings=settings)
        for step in ("written", "write begun"):
            driver.arm(step)
            driver.reached()
            wait_for_more(tmp_path, driver)
        driver.release()
        assert "INVALID_PRODUCER_EPOCH" in driver.refused()
        assert driver.finish() == 0, driver.log()
    check(node)
    tasks = [event["Task Info"] for event in events(tmp_path, "SparkListenerTaskEnd")]
    assert sum(task["Speculative"] and not task["Failed"] for task in tasks) >= 2


def test_a_stage_that_is_run_again_writes_once(node: NodeProcess, tmp_path: Path, turn: int) -> None:
    """Two tasks of the sink's stage are held as they begin to write, and the executor of one of them is lost,
    with what it had shuffled. The stage before is run again and so is the sink's, with attempts that are 0
    again, beside the task that is still held: it is let go when the batch is committed."""
    settings = {**EXECUTORS_FIRST, **event_log(tmp_path)}
    driver = Driver(
        *(node.bootstrap, tmp_path, "write begun"),
        holds=2,
        master="local-cluster[2,1,1024]",
        program=("copying", "--shuffled"),
        settings=settings,
    )
    _, lost = driver.reached(0), parent(parent(driver.reached(1)))
    assert "CoarseGrainedExecutorBackend" in Path(f"/proc/{lost}/cmdline").read_text()
    kill(lost)
    wait_for_more(tmp_path, driver)
    driver.release()
    assert "INVALID_PRODUCER_EPOCH" in driver.refused()
    assert driver.finish() == 0, driver.log()
    check(node)
    ended = list(events(tmp_path, "SparkListenerTaskEnd"))
    again = {e["Stage ID"] for e in ended if e["Task End Reason"]["Reason"] == "FetchFailed"}
    assert again, "nothing that was shuffled was missed"
    retried = [e for e in ended if e["Stage ID"] in again and e["Stage Attempt ID"] > 0]
    assert any(e["Task Info"]["Attempt"] == 0 and not e["Task Info"]["Failed"] for e in retried)


def test_of_two_drivers_on_one_checkpoint_one_survives(node: NodeProcess, tmp_path: Path, turn: int) -> None:
    """The first one sleeps while the second does all the work, and wakes up when it is done."""
    sleeper = Driver(node.bootstrap, tmp_path, "before the decision")
    sleeper.reached()
    other = Driver(node.bootstrap, tmp_path)
    assert other.finish() == 0, other.log()
    sleeper.release()
    assert sleeper.finish() != 0, "it has to be told"
    assert "of this query has taken over: two drivers use one checkpoint" in sleeper.log()
    check(node)
