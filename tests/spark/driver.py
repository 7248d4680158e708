"""Spark drivers in processes of their own (copying.py, stateful.py), with a barrier, to be killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from odradek.spark.demo.processes import descendants

ROOT = Path(__file__).parents[2]
RUN_S = 180


class Driver:
    """A driver process and all that it starts."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        step: str | None = None,
        *,
        holds: int = 1,
        master: str = "local[2,3]",
        program: Sequence[str] = ("copying",),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._barrier = folder / f"barrier-{time.monotonic_ns()}"
        self._barrier.mkdir()
        if step is not None:
            self.arm(step, holds)
        on_executors = {"spark.executorEnv.ODRADEK_BARRIER": str(self._barrier)}
        self._log_path = folder / "driver.log"
        self._log = self._log_path.open("ab")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", f"tests.spark.{program[0]}", *program[1:]),
                *("--bootstrap", bootstrap, "--folder", str(folder), "--master", master),
                *(f"--set={name}={value}" for name, value in {**on_executors, **(settings or {})}.items()),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT), "ODRADEK_BARRIER": str(self._barrier)},
            cwd=ROOT,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def arm(self, step: str, holds: int = 1) -> None:
        """The next process, or the next few, to reach this step wait there; who waits now goes on."""
        (self._barrier / "step").unlink(missing_ok=True)
        for left in (*self._barrier.glob("reached-*"), self._barrier / "released", self._barrier / "refused"):
            left.unlink(missing_ok=True)
        (self._barrier / "new").write_text(f"{step}\n{holds}\n{time.monotonic_ns()}")
        (self._barrier / "new").rename(self._barrier / "step")

    def reached(self, place: int = 0) -> int:
        """The process that waits at the barrier, as the first or a later one."""
        return int(self._told(f"reached-{place}"))

    def refused(self) -> str:
        """Why the process that was held could not go on."""
        return self._told("refused")

    def _told(self, name: str) -> str:
        deadline = time.monotonic() + RUN_S
        while time.monotonic() < deadline:
            try:
                text = (self._barrier / name).read_text()
            except FileNotFoundError:
                text = ""
            if text:
                return text
            assert self.process.poll() is None, f"the driver ended: {self.log()}"
            time.sleep(0.02)
        raise AssertionError(f"no process has {name}: {self.log()}")

    def release(self) -> None:
        """Let the process at the barrier go on."""
        (self._barrier / "released").touch()

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
        return self._log_path.read_text(errors="replace")[-6_000:]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
