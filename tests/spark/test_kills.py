"""SIGKILL at every step of the protocol, each proven reached: nothing lost, twice or left open."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.spark.barred import STEPS
from tests.spark.conftest import read_committed
from tests.support.node import ODRADEK, NodeProcess, free_port, running
from tests.support.topics import create_topic

RECORDS = 6_000
PARTITIONS = 2
ROOT = Path(__file__).parents[2]
RUN_S = 100


class Driver:
    """A driver process and all that it starts."""

    def __init__(self, node: NodeProcess, folder: Path, barrier: str | None = None, **settings: str) -> None:
        self.barrier_dir = folder / "barrier"
        self.barrier_dir.mkdir(exist_ok=True)
        env = {**os.environ, "PYTHONPATH": str(ROOT), "ODRADEK_BARRIER_DIR": str(self.barrier_dir)}
        env["ODRADEK_BARRIER"] = barrier or "none"
        master = settings.pop("master", "local[2,3]")
        self._log = (folder / "driver.log").open("ab")
        self.log_path = folder / "driver.log"
        self.process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "tests.spark.copying",
                    "--bootstrap",
                    node.bootstrap,
                    "--source",
                    "in",
                ),
                *("--sink", "out", "--folder", str(folder), "--master", master),
                *(part for k, v in settings.items() for part in ("--set", f"{k}={v}")),
            ],
            env=env,
            cwd=ROOT,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def reached(self) -> int:
        """The process that waits at the barrier."""
        deadline = time.monotonic() + RUN_S
        while time.monotonic() < deadline:
            try:
                text = (self.barrier_dir / "reached").read_text()
            except FileNotFoundError:
                text = ""
            if text:
                return int(text)
            assert self.process.poll() is None, f"the driver ended: {self.log()}"
            time.sleep(0.02)
        raise AssertionError(f"the step was not reached: {self.log()}")

    def release(self) -> None:
        """Let the process at the barrier go on."""
        (self.barrier_dir / "released").touch()

    def kill(self) -> None:
        """The driver, its JVM and its Python processes, all at once."""
        for pid in descendants(self.process.pid):
            kill(pid)
        self.process.wait()
        self._log.close()

    def finish(self) -> int:
        try:
            return self.process.wait(RUN_S)
        finally:
            self.kill()

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")[-4_000:]


def descendants(pid: int) -> list[int]:
    """A process and all that came from it, as the kernel tells."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


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
    kill(node.pid)
    node.close()
    port = node.bootstrap.rpartition(":")[2]
    started = NodeProcess(node.data_dir, "--port", port)
    node.process, node._log = started.process, started._log


def check(node: NodeProcess) -> None:
    found = Counter(int(message.value() or b"") for message in read_committed(node.bootstrap, "out"))
    twice = [number for number, count in found.items() if count > 1]
    missing = [number for number in range(RECORDS) if number not in found]
    assert not twice, f"{len(twice)} records are there twice, {twice[0]} among them"
    assert not missing, f"{len(missing)} records are missing, {missing[0]} among them"
    assert len(found) == RECORDS
    listed = subprocess.run(
        [str(ODRADEK), "txn", "list", "-b", node.bootstrap, "-f", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"Ongoing"' not in listed.stdout, listed.stdout
    assert '"Prepare' not in listed.stdout, listed.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_is_killed_goes_on_as_if_nothing_had_been(
    node: NodeProcess, tmp_path: Path, step: str
) -> None:
    first = Driver(node, tmp_path, step)
    first.reached()
    first.kill()
    again = Driver(node, tmp_path)
    assert again.finish() == 0, again.log()
    check(node)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", ["source read", "write begun", "written"])
def test_a_task_that_is_killed_is_tried_again(node: NodeProcess, tmp_path: Path, step: str) -> None:
    driver = Driver(node, tmp_path, step)
    kill(driver.reached())
    assert driver.finish() == 0, driver.log()
    check(node)


@pytest.mark.timeout(300)
def test_a_commit_that_is_killed_ends_the_query_and_the_next_one_goes_on(
    node: NodeProcess, tmp_path: Path
) -> None:
    """Not the driver dies, but the process in which it commits: the query fails, and is started again."""
    driver = Driver(node, tmp_path, "after the decision")
    kill(driver.reached())
    assert driver.finish() != 0
    again = Driver(node, tmp_path)
    assert again.finish() == 0, again.log()
    check(node)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", ["written", "before the decision", "between the ends"])
def test_a_broker_that_is_killed_is_waited_for(node: NodeProcess, tmp_path: Path, step: str) -> None:
    driver = Driver(node, tmp_path, step)
    driver.reached()
    strike(node)
    driver.release()
    assert driver.finish() == 0, driver.log()
    check(node)


@pytest.mark.timeout(300)
def test_an_executor_that_is_lost_is_replaced(node: NodeProcess, tmp_path: Path) -> None:
    driver = Driver(node, tmp_path, "written", master="local-cluster[2,1,512]")
    worker = driver.reached()
    executor = parent(parent(worker))
    assert "CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_text()
    kill(executor)
    assert driver.finish() == 0, driver.log()
    check(node)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", ["written", "before the decision", "after the decision"])
def test_of_two_drivers_on_one_checkpoint_one_survives(node: NodeProcess, tmp_path: Path, step: str) -> None:
    """The first one sleeps while the second does all the work, and wakes up when it is done."""
    sleeper = Driver(node, tmp_path, step)
    sleeper.reached()
    other = Driver(node, tmp_path)
    assert other.finish() == 0, other.log()
    sleeper.release()
    sleeper.finish()
    check(node)
