"""Spark drivers in processes of their own (copying.py), with a barrier, to be killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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
        master: str = "local[2,3]",
        **settings: str,
    ) -> None:
        self._barrier = folder / f"barrier-{time.monotonic_ns()}"
        self._barrier.mkdir()
        if step is not None:
            self.arm(step)
        self._log_path = folder / "driver.log"
        self._log = self._log_path.open("ab")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.spark.copying", "--bootstrap", bootstrap, "--source", "in"),
                *("--sink", "out", "--folder", str(folder), "--master", master),
                *(part for name, value in settings.items() for part in ("--set", f"{name}={value}")),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT), "ODRADEK_BARRIER": str(self._barrier)},
            cwd=ROOT,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def arm(self, step: str) -> None:
        """The next process to reach this step waits there."""
        (self._barrier / "step").unlink(missing_ok=True)
        (self._barrier / "reached").unlink(missing_ok=True)
        (self._barrier / "released").unlink(missing_ok=True)
        (self._barrier / "new").write_text(f"{step}\n{time.monotonic_ns()}")
        (self._barrier / "new").rename(self._barrier / "step")

    def reached(self) -> int:
        """The process that waits at the barrier."""
        deadline = time.monotonic() + RUN_S
        while time.monotonic() < deadline:
            try:
                text = (self._barrier / "reached").read_text()
            except FileNotFoundError:
                text = ""
            if text:
                return int(text)
            assert self.process.poll() is None, f"the driver ended: {self.log()}"
            time.sleep(0.02)
        raise AssertionError(f"the step was not reached: {self.log()}")

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
    for parent_pid in found:
        found += children.get(parent_pid, [])
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
