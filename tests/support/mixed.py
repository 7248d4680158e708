"""Clusters of Apache Kafka's nodes and ours, each in a process that can be killed. We format them all."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import IO, NamedTuple

from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import HOST, properties_text
from odradek.core.configs import NodeConfig
from odradek.core.types import uuid_to_text
from odradek.metadata.formatting import OBSERVER, STATIC, FirstVoters, new_id
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet
from tests.cluster.nodes import free_ports
from tests.support import peer
from tests.support.quorum_tables import until

APACHE, ODRADEK = "apache", "odradek"
_READY = {APACHE: "Kafka Server started", ODRADEK: " ready: "}
_LOG4J = """<Configuration status="error">
  <Appenders>
    <Console name="out"><PatternLayout pattern="%d{ISO8601} %-5p [%t] %c{1}: %m%n"/></Console>
  </Appenders>
  <Loggers><Root level="info"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


class Member(NamedTuple):
    """`kind` is APACHE or ODRADEK; `roles` as in process.roles."""

    node_id: int
    kind: str
    roles: str


class MixedNode:
    """One node: started, killed, started again. Its log is a file."""

    def __init__(self, folder: Path, member: Member, properties: Mapping[str, str]) -> None:
        self.member = member
        self.properties = properties
        self._config = folder / f"node-{member.node_id}.properties"
        self._config.write_text(properties_text(properties))
        self._log4j = folder / "log4j2.xml"
        self._log_path = folder / f"node-{member.node_id}.log"
        self._began = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log_path.open("ab") as out:
            self._began = out.tell()
            self.process = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
            )

    def _command(self) -> list[str]:
        if self.member.kind == ODRADEK:
            words = ("odradek.cli.node.tethered", "start", "--config", str(self._config), "--http", "off")
            return [sys.executable, "-m", *words]
        options = peer.quick()["PEER_JVM_OPTS"].split()
        return [
            *("java", "-Xmx256m", *options, f"-Dlog4j2.configurationFile=file:{self._log4j}"),
            *("-cp", f"{peer.jars()}/*", "kafka.Kafka", str(self._config)),
        ]

    @property
    def address(self) -> str:
        """Of its broker."""
        return self.properties["listeners"].split(",")[0].partition("://")[2]

    @property
    def log(self) -> str:
        """Of its present life."""
        return self._log_path.read_bytes()[self._began :].decode(errors="replace")

    def wait_ready(self) -> None:
        def is_ready() -> bool:
            assert self.process is not None and self.process.poll() is None, self.log[-4000:]
            return _READY[self.member.kind] in self.log

        until(is_ready, what=lambda: f"{self.member} is not ready:\n{self.log[-4000:]}")

    def send(self, sig: int) -> None:
        assert self.process is not None
        self.process.send_signal(sig)

    def end(self, sig: int = signal.SIGKILL) -> None:
        """Signal it, and wait until it is gone."""
        if self.process is None:
            return
        self.process.send_signal(sig)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        pipe: IO[bytes] | None = self.process.stdin
        assert pipe is not None
        pipe.close()
        self.process = None


class MixedCluster:
    """Voters are the members that are controllers: recorded in the log, or static ones of kraft.version 0."""

    def __init__(
        self, folder: Path, members: Sequence[Member], settings: Mapping[str, str], *, is_static: bool = False
    ) -> None:
        rng = Random()
        (folder / "log4j2.xml").write_text(_LOG4J)
        ports = dict(zip((m.node_id for m in members), free_ports(len(members)), strict=True))
        voting = [m for m in members if "controller" in m.roles]
        self.controllers = ",".join(f"{HOST}:{ports[m.node_id].controller}" for m in voting)
        self.cluster_id = uuid_to_text(new_id(rng))
        self.voters = VoterSet(
            Voter(m.node_id, new_id(rng), (VoterEndpoint("CONTROLLER", HOST, ports[m.node_id].controller),))
            for m in voting
        )
        self.nodes: dict[int, MixedNode] = {}
        self.servers = ",".join(f"{HOST}:{ports[m.node_id].broker}" for m in members if "broker" in m.roles)
        for member in members:
            pair = ports[member.node_id]
            listeners = {"broker": f"PLAINTEXT://{HOST}:{pair.broker}"}
            listeners["controller"] = f"CONTROLLER://{HOST}:{pair.controller}"
            properties = {
                "node.id": str(member.node_id),
                "process.roles": member.roles,
                "listeners": ",".join(listeners[role] for role in member.roles.split(",")),
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": str(folder / f"node-{member.node_id}"),
                **settings,
            }
            if is_static:
                listed = (f"{m.node_id}@{HOST}:{ports[m.node_id].controller}" for m in voting)
                properties["controller.quorum.voters"] = ",".join(listed)
            else:
                properties["controller.quorum.bootstrap.servers"] = self.controllers
            if "broker" in member.roles:
                properties["inter.broker.listener.name"] = "PLAINTEXT"
            first = STATIC if is_static else FirstVoters(voters=self.voters) if member in voting else OBSERVER
            format_node(NodeConfig.from_sources({}, properties)[0], self.cluster_id, first)
            self.nodes[member.node_id] = MixedNode(folder, member, properties)

    def start(self, *node_ids: int) -> None:
        """Start these together, or all, and wait until they are ready."""
        chosen = [self.nodes[node_id] for node_id in node_ids or self.nodes]
        for node in chosen:
            node.start()
        for node in chosen:
            node.wait_ready()

    def kill(self, node_id: int) -> float:
        """When it was gone."""
        self.nodes[node_id].end()
        return time.monotonic()

    def freeze(self, node_id: int) -> None:
        """It stands still, and its connections stay open."""
        self.nodes[node_id].send(signal.SIGSTOP)

    def thaw(self, node_id: int) -> None:
        self.nodes[node_id].send(signal.SIGCONT)

    def close(self) -> None:
        for node in self.nodes.values():
            node.end()


@contextmanager
def mixed(
    folder: Path, members: Sequence[Member], settings: Mapping[str, str], *, is_static: bool = False
) -> Iterator[MixedCluster]:
    cluster = MixedCluster(folder, members, settings, is_static=is_static)
    try:
        yield cluster
    finally:
        cluster.close()
