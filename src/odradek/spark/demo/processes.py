"""The processes of the demo: a broker and Spark drivers, to be killed with all that they have started."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PROC = Path("/proc")
_LOOK_S = 0.02
_READY_S = 60.0
_END_S = 30.0


class ProcessError(Exception):
    """A process did not do what it was started for; `log` tells why."""

    def __init__(self, message: str, log: Path) -> None:
        super().__init__(message)
        self.log = log


class Child:
    """A command in a process. Its output goes to a file; its input ends when this process does."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        self._start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self._start)
            return file.read().decode(errors="replace")

    def kill(self) -> None:
        """SIGKILL to the process and all that came from it, at once."""
        if self.code is None:
            for pid in descendants(self.pid):
                _signal(pid, signal.SIGKILL)
        self._process.wait()
        self._close_input()

    async def stop(self) -> int:
        """SIGTERM, and time to end cleanly."""
        if self.code is None:
            _signal(self.pid, signal.SIGTERM)
        try:
            return await self.ended(_END_S)
        finally:
            self.kill()

    async def ended(self, timeout_s: float) -> int:
        async with asyncio.timeout(timeout_s):
            while (code := self.code) is None:
                await asyncio.sleep(_LOOK_S)
        self._close_input()
        return code

    def _close_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


class Broker(Child):
    """`odradek start`, on a port of its own."""

    def __init__(
        self, odradek: Sequence[str], folder: Path, environment: Mapping[str, str], port: int
    ) -> None:
        data = str(folder / "data")
        command = [*odradek, "start", "--port", str(port), "--http", "off", "--data-dir", data]
        super().__init__(command, folder / "broker.log", environment)

    async def ready(self) -> None:
        async with asyncio.timeout(_READY_S):
            while " ready: " not in self.output():
                if self.code is not None:
                    raise ProcessError("the broker did not start", self.log)
                await asyncio.sleep(_LOOK_S)


class Driver(Child):
    """`odradek pipeline run`: the driver, its JVM and its Python workers."""

    def __init__(self, odradek: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__([*odradek, "pipeline", "run", str(folder)], folder / "driver.log", environment)


def descendants(pid: int) -> list[int]:
    """A process and all that came from it. Spark's Python workers are in a process group of their own."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = [pid]
    for known in found:
        found += children.get(known, [])
    return found


def _parents() -> list[tuple[int, int]]:
    """Every process with the one that started it, as the kernel tells, or where it does not, ps."""
    if _PROC.joinpath("self").exists():
        return [found for stat in _PROC.glob("[0-9]*/stat") if (found := _parent(stat)) is not None]
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    return [(int(line.split()[0]), int(line.split()[1])) for line in listed.stdout.splitlines()]


def _parent(stat: Path) -> tuple[int, int] | None:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None  # it has ended meanwhile
    return int(stat.parent.name), int(fields[1])


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
