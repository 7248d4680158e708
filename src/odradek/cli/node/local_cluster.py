"""The processes of a cluster on this machine: started together, watched, and ended together.

Each node is `odradek start` in a process that ends with this one, however this one ends (tethered.py).
"""

import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, Final

from odradek.cli.errors import Failure
from odradek.cli.node.local_plan import PlannedNode
from odradek.cli.node.node_events import event_text, exit_text, ready_text

_KEPT_LINES: Final = 20
_STOP_SECONDS: Final = 30.0

Tell = Callable[[int, str], None]


class LocalNode:
    """One process. `tell` hears of its events, from other threads."""

    def __init__(self, planned: PlannedNode, config_path: str, tell: Tell) -> None:
        self.node_id = planned.node_id
        self.ready = threading.Event()
        self._tell = tell
        self._tail: deque[str] = deque(maxlen=_KEPT_LINES)
        self._is_stopping = False
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "odradek.cli.node.tethered",
                "start",
                "--config",
                config_path,
                "--http",
                "off",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches the parent, which ends the nodes in order
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read_stdout, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self.process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self, lines: IO[str]) -> None:
        for line in lines:
            text = ready_text(line)
            if text is not None:
                self._tell(self.node_id, text)
                self.ready.set()
        code = self.process.wait()
        if not self._is_stopping:
            self._tell(self.node_id, exit_text(code))
        self.ready.set()

    def _read_stderr(self, lines: IO[str]) -> None:
        for line in lines:
            self._tail.append(line.rstrip())
            text = event_text(line.rstrip())
            if text is not None and not self._is_stopping:
                self._tell(self.node_id, text)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def last_words(self) -> list[str]:
        return list(self._tail)

    def stop(self) -> None:
        self._is_stopping = True
        self.process.terminate()

    def kill(self) -> None:
        self._is_stopping = True
        self.process.kill()

    def wait(self, seconds: float) -> None:
        """Until the process has ended; it is killed when that takes longer."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class LocalCluster:
    """`launch`, then `wait_until_ready`; `stop` in any case."""

    def __init__(self, nodes: Sequence[PlannedNode], config_paths: Sequence[str], tell: Tell) -> None:
        self._planned = list(zip(nodes, config_paths, strict=True))
        self._tell = tell
        self.nodes: list[LocalNode] = []

    def launch(self) -> None:
        """Start every process. To be interrupted by nothing: `stop` ends only the processes it knows."""
        for planned, path in self._planned:
            self.nodes.append(LocalNode(planned, path, self._tell))

    def wait_until_ready(self, seconds: float) -> None:
        """All nodes are ready when this returns. Failure, with the last lines of a node that is not."""
        deadline = time.monotonic() + seconds
        for node in self.nodes:
            is_ready = node.ready.wait(max(0.0, deadline - time.monotonic()))
            if not is_ready or node.has_ended:
                what = "ended" if node.has_ended else f"is not ready after {seconds:.0f} s"
                raise Failure([f"node {node.node_id} {what}", *node.last_words()])

    def stop(self, *, is_kept: bool) -> None:
        """End all nodes: in an orderly way where their data is kept, else at once."""
        for node in self.nodes:
            if is_kept:
                node.stop()
            else:
                node.kill()
        deadline = time.monotonic() + _STOP_SECONDS
        for node in self.nodes:
            node.wait(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        """End all nodes at once. A `stop` under way then returns."""
        for node in self.nodes:
            node.kill()
