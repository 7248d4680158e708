"""Three nodes of either kind, or a controller apart from its broker, each in a process."""

import contextlib
import pathlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from cluster import HERE, PEER, run

from odradek.cli.node.local_directories import format_cluster, free_ports
from odradek.cli.node.local_plan import NodePorts, properties_text

HOST = "127.0.0.1"
ODRADEK = HERE.parent / ".venv" / "bin" / "odradek"
APART = 101
"""The controller that is no broker, as tools/peer/peer numbers it."""


class Nodes(Protocol):
    """Nodes 1 to `count`, each in a process; with one controller apart, that is node 101."""

    ports: list[int]

    def start(self) -> None: ...
    def kill(self, node_id: int) -> None: ...
    def restart(self, node_id: int) -> None: ...
    def pid(self, node_id: int) -> int: ...
    def stop(self) -> None: ...


class ApacheNodes:
    """Through tools/peer/peer, whose `start` returns when they serve."""

    def __init__(self, folder: pathlib.Path, port: int, *, apart: bool = False) -> None:
        self._folder = folder
        self._roles = ("--controllers", 1, "--brokers", 1) if apart else ("--nodes", 3)
        self._port = port
        self.ports = [port + i for i in range(1 if apart else 3)]

    def start(self) -> None:
        run(PEER, "start", *self._roles, "--port", self._port, "--dir", self._folder)

    def kill(self, node_id: int) -> None:
        run(PEER, "kill", node_id, "--dir", self._folder)

    def restart(self, node_id: int) -> None:
        run(PEER, "restart", node_id, "--dir", self._folder)

    def pid(self, node_id: int) -> int:
        lines = run(PEER, "status", "--dir", self._folder).splitlines()
        return next(int(line.split()[2]) for line in lines if line.split()[0] == str(node_id))

    def stop(self) -> None:
        run(PEER, "stop", "--dir", self._folder)


def _apart(folder: pathlib.Path, port: int, controller_port: int) -> dict[int, dict[str, str]]:
    """A controller and a broker: nobody formats them."""
    quorum = {
        "controller.quorum.voters": f"{APART}@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
    }
    return {
        APART: {
            "node.id": str(APART),
            "process.roles": "controller",
            "listeners": f"CONTROLLER://{HOST}:{controller_port}",
            "log.dirs": str(folder / f"data-{APART}"),
            **quorum,
        },
        1: {
            "node.id": "1",
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://{HOST}:{port}",
            "log.dirs": str(folder / "data-1"),
            **quorum,
        },
    }


class OdradekNodes:
    def __init__(self, folder: pathlib.Path, port: int, *, apart: bool = False) -> None:
        self._folder = folder
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        found = free_ports(3)
        self.ports = [port + i for i in range(1 if apart else 3)]
        if apart:
            planned = _apart(folder, port, found[0].controller)
        else:
            pairs = [NodePorts(port + i, pair.controller) for i, pair in enumerate(found)]
            planned = {n.node_id: n.properties for n in format_cluster(str(folder), pairs, {}).nodes}
        self._files = {node_id: folder / f"node-{node_id}.properties" for node_id in planned}
        for node_id, properties in planned.items():
            self._files[node_id].write_text(properties_text(properties))

    def start(self) -> None:
        for node_id in self._files:
            self._start(node_id)

    def _start(self, node_id: int) -> None:
        command = [str(ODRADEK), "start", "--config", str(self._files[node_id]), "--http", "off"]
        with (self._folder / f"node-{node_id}.log").open("ab") as log:
            self._processes[node_id] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, node_id: int) -> None:
        self._processes[node_id].kill()
        self._processes[node_id].wait()

    def restart(self, node_id: int) -> None:
        self._start(node_id)

    def pid(self, node_id: int) -> int:
        return self._processes[node_id].pid

    def stop(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            process.wait()


KINDS: dict[str, Callable[..., Nodes]] = {"odradek": OdradekNodes, "apache": ApacheNodes}


@contextlib.contextmanager
def new_folder(work: pathlib.Path, broker: str) -> Iterator[pathlib.Path]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"bench-{broker}-", dir=work))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    """Done in a thread, until the end of the block at the latest."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield
        done.result()


def rss_mb(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
