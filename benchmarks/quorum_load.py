"""Three nodes and their controllers: failover, decisions, start, memory. Every cluster is asked the same."""

import asyncio
import contextlib
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from cluster import HERE, PEER, run
from confluent_kafka import Producer

from odradek.cli.node.local_directories import format_cluster, free_ports
from odradek.cli.node.local_plan import NodePorts, properties_text
from odradek.client.connection import BrokerConnection
from odradek.core.errors import KafkaError, ProtocolError
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

HOST = "127.0.0.1"
ODRADEK = HERE.parent / ".venv" / "bin" / "odradek"
CREATE_TOPICS, METADATA, DESCRIBE_QUORUM = 7, 12, 2
WITHIN_S = 120
PAUSE_S = 0.01
EXISTS = 36
MANY_PER_TOPIC = 1_000
APART = 101
"""The controller that is no broker, as tools/peer/peer numbers it."""
Sample = tuple[str, float]


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
def _folder(work: pathlib.Path, broker: str) -> Iterator[pathlib.Path]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"bench-{broker}-", dir=work))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def quorum(
    broker: str, work: pathlib.Path, port: int, *, partitions: int, many: int, creates: int, runs: int
) -> Iterator[Sample]:
    """Row keys and values, for three nodes, and then for a controller apart from its broker."""
    for _ in range(runs):
        with _folder(work, broker) as folder:
            nodes = KINDS[broker](folder, port)
            try:
                yield from _three(nodes, partitions, creates)
            finally:
                nodes.stop()
    with _folder(work, broker) as folder:
        nodes = KINDS[broker](folder, port, apart=True)
        try:
            yield from _apart_with(nodes, many)
        finally:
            nodes.stop()


def _three(nodes: Nodes, partitions: int, creates: int) -> Iterator[Sample]:
    began = time.monotonic()
    with _beside(nodes.start):
        asyncio.run(_until_acknowledged(nodes.ports[0]))
        yield "quorum.start", (time.monotonic() - began) * 1000
    asyncio.run(_until_brokers(nodes.ports[0], 3))
    began = time.monotonic()
    asyncio.run(_create(nodes.ports, ["wide"], partitions))
    asyncio.run(_until_led(nodes.ports[0], "wide", partitions))
    yield "quorum.led", (time.monotonic() - began) * 1000
    began = time.monotonic()
    asyncio.run(_create(nodes.ports, [f"one-{i}" for i in range(creates)], 1))
    yield "quorum.create", creates / (time.monotonic() - began)
    leader = asyncio.run(_leader(nodes.ports[0]))
    others = [port for i, port in enumerate(nodes.ports, 1) if i != leader]
    nodes.kill(leader)
    began = time.monotonic()
    asyncio.run(_create(others, ["after-the-kill"], 1))
    yield "quorum.failover", (time.monotonic() - began) * 1000


def _apart_with(nodes: Nodes, many: int) -> Iterator[Sample]:
    with _beside(nodes.start):
        asyncio.run(_until_acknowledged(nodes.ports[0]))
    names = [f"many-{i}" for i in range(0, many, MANY_PER_TOPIC)]
    asyncio.run(_create(nodes.ports, names, min(many, MANY_PER_TOPIC)))
    yield "quorum.controller.rss", _rss_mb(nodes.pid(APART))
    nodes.kill(APART)
    began = time.monotonic()
    with _beside(lambda: nodes.restart(APART)):
        asyncio.run(_create(nodes.ports, ["after-the-restart"], 1))
        yield "quorum.controller.restart", (time.monotonic() - began) * 1000


@contextlib.contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    """Done in a thread, until the end of the block at the latest."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield
        done.result()


def _rss_mb(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


# --- questions, asked again until they are answered ---------------------------------------------------------


class Asking:
    """One connection to any of the brokers. When it breaks, the next question opens another."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._tries = 0
        self._connection: BrokerConnection | None = None

    async def ask(self, api_key: ApiKey, version: int, request: Any, is_answer: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            try:
                if self._connection is None:
                    port = self._ports[self._tries % len(self._ports)]
                    self._tries += 1
                    self._connection = await BrokerConnection.open(
                        RealRuntime(), HOST, port, client_id="bench"
                    )
                answer = await self._connection.send(api_key, request, version)
            except (OSError, ProtocolError, KafkaError):
                self.close()
            else:
                if is_answer(answer):
                    return answer
            await asyncio.sleep(PAUSE_S)
        raise RuntimeError(f"{api_key.name} is not answered")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


async def _create(ports: Sequence[int], names: Sequence[str], partitions: int) -> None:
    """One request after another. A topic that is there was created by a request whose answer was lost."""
    types = request_types(ApiKey.CREATE_TOPICS)
    asking = Asking(ports)
    for name in names:
        topic = types.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic], timeout=30_000, validate_only=False)
        await asking.ask(
            ApiKey.CREATE_TOPICS, CREATE_TOPICS, request, lambda a: a.topics[0].error_code in (0, EXISTS)
        )
    asking.close()


async def _metadata(port: int, topics: list[str], is_answer: Callable[[Any], bool]) -> None:
    types = request_types(ApiKey.METADATA)
    request = types.MetadataRequest(
        topics=[types.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    asking = Asking([port])
    await asking.ask(ApiKey.METADATA, METADATA, request, is_answer)
    asking.close()


async def _until_brokers(port: int, count: int) -> None:
    await _metadata(port, [], lambda answer: len(answer.brokers) == count)


async def _until_led(port: int, topic: str, partitions: int) -> None:
    def is_led(answer: Any) -> bool:
        found = answer.topics[0].partitions
        return len(found) == partitions and all(p.error_code == 0 and p.leader_id >= 0 for p in found)

    await _metadata(port, [topic], is_led)


async def _leader(port: int) -> int:
    types = request_types(ApiKey.DESCRIBE_QUORUM)
    partition = types.PartitionData(partition_index=0)
    request = types.DescribeQuorumRequest(
        topics=[types.TopicData(topic_name="__cluster_metadata", partitions=[partition])]
    )
    asking = Asking([port])
    found = await asking.ask(
        ApiKey.DESCRIBE_QUORUM,
        DESCRIBE_QUORUM,
        request,
        lambda answer: answer.error_code == 0 and answer.topics[0].partitions[0].leader_id > 0,
    )
    asking.close()
    leader: int = found.topics[0].partitions[0].leader_id
    return leader


async def _until_acknowledged(port: int) -> None:
    """The first record that a client writes, to a topic that it creates, is acknowledged."""
    await _create([port], ["first"], 1)
    producer = Producer({"bootstrap.servers": f"{HOST}:{port}", "linger.ms": 0})
    producer.produce("first", b"a record")
    if producer.flush(WITHIN_S):
        raise RuntimeError("the first record is not acknowledged")
