"""The broker under test as users run it: `odradek start` in a process of its own, until its ready line."""

import contextlib
import pathlib
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator

from tests.support.readable import is_readable

READY_TIMEOUT_S = 30
ODRADEK = pathlib.Path(sys.executable).with_name("odradek")
_ADDRESS = re.compile(r"\b((?:\d{1,3}\.){3}\d{1,3}|localhost):(\d+)\b")


class NodeProcess:
    """A running `odradek start`. Its log goes to a file beside the data directory."""

    def __init__(self, data_dir: pathlib.Path, *args: str, descriptors: int | None = None) -> None:
        self.data_dir = data_dir
        self._descriptors = descriptors
        self.log_path = data_dir.with_name(data_dir.name + ".log")
        self._args = args
        self._start(*args)

    def _start(self, *args: str) -> None:
        self._log = self.log_path.open("ab")
        self.process = subprocess.Popen(
            [str(ODRADEK), "start", "--port", "0", "--http", "off", "--data-dir", str(self.data_dir), *args],
            stdout=subprocess.PIPE,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            preexec_fn=None if self._descriptors is None else self._limit,
        )
        try:
            self.ready_line = self._wait_ready()
        except BaseException:
            self.process.kill()
            self.close()
            raise
        found = _ADDRESS.search(self.ready_line)
        assert found, f"no address in the ready line {self.ready_line!r}"
        self.bootstrap = f"{found[1]}:{found[2]}"

    def _limit(self) -> None:
        """ulimit -n, soft and hard."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._descriptors, self._descriptors))

    def _wait_ready(self) -> str:
        out = self.process.stdout
        assert out is not None
        line = out.readline().decode() if is_readable(out, READY_TIMEOUT_S) else ""
        if not line:
            self.process.kill()
            raise RuntimeError(f"odradek did not become ready; its log:\n{self.log_path.read_text()[-4000:]}")
        return line

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self, sig: int = signal.SIGTERM, timeout_s: float = 20) -> int:
        """Signal it and wait; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(timeout_s)
        finally:
            self.process.kill()
            self.close()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.close()

    def restart(self) -> None:
        """Once it has ended: again, with the same settings, under the same address."""
        self._start(*self._args, "--port", self.bootstrap.rpartition(":")[2])

    def close(self) -> None:
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self._log.close()

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")


@contextlib.contextmanager
def running(data_dir: pathlib.Path, *args: str, descriptors: int | None = None) -> Iterator[NodeProcess]:
    node = NodeProcess(data_dir, *args, descriptors=descriptors)
    try:
        yield node
    finally:
        node.stop()
