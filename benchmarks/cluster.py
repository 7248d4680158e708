"""One broker under measurement, driven through a control program with the command line of tools/peer/peer."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
PEER = HERE.parent / "tools" / "peer" / "peer"
CONTROL = {"odradek": HERE / "odradek-ctl", "apache": PEER}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TIMEOUT_S = 280


def run(*command: object, **options: Any) -> str:
    """Run a program to its end; its stdout."""
    words = [str(word) for word in command]
    done: subprocess.CompletedProcess[str]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **options)
    if done.returncode:
        tail = f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{tail}")
    return done.stdout


def build_kgen(directory: pathlib.Path) -> pathlib.Path:
    """Compile the load generator."""
    out = directory / "kgen"
    run("gcc", "-O2", "-w", "-o", out, HERE / "kgen.c", "-lpthread")
    return out


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield from _family(int(child))


def _stat(pid: int) -> list[str]:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def cpu_s(pid: int) -> float:
    """User and system time of a process and its children so far, those included that have ended."""
    ticks = 0
    for member in _family(pid):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, _stat(member)[11:15]))
    return ticks / TICKS_PER_S


def own_cpu_s(pid: int) -> float:
    """User and system time of a process alone."""
    return sum(map(int, _stat(pid)[11:13])) / TICKS_PER_S


class Cluster:
    """A broker of one node in a fresh directory, and kgen aimed at it."""

    def __init__(
        self,
        broker: str,
        kgen: pathlib.Path,
        port: int,
        work: pathlib.Path,
        *,
        sets: Sequence[str] = (),
        profile: pathlib.Path | None = None,
    ) -> None:
        self.control, self.kgen_path, self.port = CONTROL[broker], kgen, port
        self.bootstrap = f"127.0.0.1:{port}"
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"bench-{broker}-", dir=work))
        self.start_args = ["start", "--port", port, "--dir", self.directory]
        for pair in sets:
            self.start_args += ["--set", pair]
        self._env = {**os.environ, **({"ODRADEK_CTL_PROFILE": str(profile)} if profile else {})}

    def __enter__(self) -> "Cluster":
        self.act(*self.start_args)
        return self

    def __exit__(self, *_: object) -> None:
        self.act("stop", "--dir", self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)

    def act(self, *args: object) -> str:
        return run(self.control, *args, env=self._env)

    @property
    def pid(self) -> int:
        return int(self.act("status", "--dir", self.directory).split()[2])

    def cpu_s(self) -> float:
        return cpu_s(self.pid)

    def rss_mb(self) -> float:
        kilobytes = 0
        for pid in _family(self.pid):
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                found = re.search(r"VmRSS:\s+(\d+)", status)
                kilobytes += int(found[1]) if found else 0
        return kilobytes / 1024

    def kgen(self, command: str, topic: str, **options: object) -> dict[str, Any]:
        pairs = [f"{k}={v}" for k, v in options.items()]
        answer: dict[str, Any] = json.loads(
            run(self.kgen_path, command, f"ports={self.port}", f"topic={topic}", *pairs)
        )
        return answer

    def loaded(self, command: str, topic: str, **options: object) -> dict[str, Any]:
        """A kgen run with the broker's CPU seconds per gigabyte added."""
        before = self.cpu_s()
        answer = self.kgen(command, topic, **options)
        answer["cpu_per_gb"] = (self.cpu_s() - before) / (answer["bytes"] / 1e9)
        return answer

    def until_ack_ms(self, *action: object, **options: object) -> float:
        """Run a control action; ms from the node's process start to its first acknowledged record."""
        acting = threading.Thread(target=self.act, args=action)
        acting.start()
        acked = self.kgen("first", "first", **options)["boottime"]
        acting.join()
        born: float = int(_stat(self.pid)[19]) / TICKS_PER_S
        return float(acked - born) * 1000
