"""`odradek up`: a cluster on this machine, alone or around a command. local_cluster.py runs its processes,
surrounded.py the command."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from odradek.cli.declaring import Argument, Noun, option
from odradek.cli.errors import Usage, kafka_failure, usage
from odradek.cli.node.local_plan import DEFAULT_PORT, ClusterPlan, known_cluster, properties_text
from odradek.cli.options import command
from odradek.cli.properties import parse_pairs
from odradek.cli.session import Session
from odradek.core.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.cli.node.surrounded import SurroundedCommand

_START_SECONDS = 60.0
_MEMORY = "/dev/shm"

root = Noun()


class SeedTopic(NamedTuple):
    """NAME:PARTITIONS:RF of --seed-topic."""

    name: str
    partitions: int
    replication_factor: int


@command(root, "up", connects=False)
def up(
    session: Session,
    run: Annotated[
        list[str] | None,
        Argument(metavar="-- COMMAND", help="Run this command with KAFKA_BOOTSTRAP_SERVERS set, then end."),
    ] = None,
    nodes: Annotated[int, option("-n", "--nodes", min=1, metavar="COUNT", help="How many nodes.")] = 3,
    folder: Annotated[
        Path | None,
        option(
            "-d",
            "--data-dir",
            metavar="DIR",
            help="Directory of the data; kept, and used again. [default: ./odradek-cluster]",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        bool, option("--memory", help="Keep the data in memory, and nothing in the end.")
    ] = False,
    port: Annotated[
        int | None,
        option(
            "--port",
            metavar="PORT",
            help=f"Port of the first broker; 0 picks free ones. [default: {DEFAULT_PORT} if free]",
            show_default=False,
        ),
    ] = None,
    seed_topics: Annotated[
        list[str] | None,
        option(
            "--seed-topic", metavar="NAME:PARTITIONS:RF", help="Create a topic when the cluster is ready."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, option("--set", metavar="KEY=VALUE", help="A setting of every node.")
    ] = None,
) -> None:
    """Start a cluster on this machine.

    Runs every node in a process of its own until Ctrl-C, or until COMMAND ends; then returns its exit code.
    Shows a line for each node and its events.
    """
    if memory and folder is not None:
        raise Usage("--memory and --data-dir cannot be combined")
    with usage():
        topics = [parse_seed_topic(text) for text in seed_topics or ()]
        overrides = parse_pairs("--set", settings or ())
    from odradek.cli.node.surrounded import SurroundedCommand

    around = SurroundedCommand()
    with around.taking_signals(), _folder(folder, memory) as place:
        plan, paths = _prepare(place, nodes, port, overrides)
        code = _run(session, around, plan, paths, topics, run or [], is_kept=not memory)
    if code:
        raise SystemExit(code)


def parse_seed_topic(text: str) -> SeedTopic:
    name, *numbers = text.split(":")
    if not name or len(numbers) > 2 or not all(n.isdecimal() and int(n) > 0 for n in numbers):
        raise ValueError(f"--seed-topic {text}: give NAME, NAME:PARTITIONS or NAME:PARTITIONS:RF")
    partitions, factor = (*map(int, numbers), 1, 1)[:2] if numbers else (1, 1)
    return SeedTopic(name, partitions, factor)


@contextmanager
def _folder(given: Path | None, memory: bool) -> Iterator[Path]:
    if not memory:
        yield (given or Path("odradek-cluster")).absolute()
        return
    parent = _MEMORY if os.path.isdir(_MEMORY) and os.access(_MEMORY, os.W_OK) else None
    place = tempfile.mkdtemp(prefix="odradek-", dir=parent)
    try:
        yield Path(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _prepare(
    place: Path, count: int, port: int | None, settings: dict[str, str]
) -> tuple[ClusterPlan, list[str]]:
    """Write the configuration of every node and format its directory; what is there already stays."""
    from odradek.cli.node.local_directories import format_cluster, free_ports
    from odradek.core.configs import ConfigError

    known = sorted(place.glob("node-*.properties"))
    if known:
        return _known_cluster(known, count)
    ports = free_ports(count, port)
    place.mkdir(parents=True, exist_ok=True)
    try:
        plan = format_cluster(str(place), ports, settings)
    except ConfigError as e:
        raise Usage(str(e)) from e
    paths = []
    for node in plan.nodes:
        path = place / f"node-{node.node_id}.properties"
        path.write_text(properties_text(node.properties))
        paths.append(str(path))
    return plan, paths


def _known_cluster(paths: Sequence[Path], count: int) -> tuple[ClusterPlan, list[str]]:
    from odradek.core.configs import parse_properties

    if len(paths) != count:
        raise Usage(
            f"{paths[0].parent} holds a cluster of {len(paths)} nodes", f"next: odradek up -n {len(paths)}"
        )
    plan = known_cluster([parse_properties(path.read_text()) for path in paths])
    return plan, [str(path) for path in paths]


def _run(
    session: Session,
    around: "SurroundedCommand",
    plan: ClusterPlan,
    paths: list[str],
    topics: Sequence[SeedTopic],
    run: list[str],
    *,
    is_kept: bool,
) -> int:
    from odradek.cli.node.local_cluster import LocalCluster

    lock = threading.Lock()
    started_s = time.monotonic()

    def tell(node_id: int, text: str) -> None:
        with lock:
            session.terminal.note(f"node {node_id}  {text}")

    def announce() -> None:
        elapsed_ms = (time.monotonic() - started_s) * 1000
        nodes = "1 node" if len(plan.nodes) == 1 else f"{len(plan.nodes)} nodes"
        session.terminal.note(f"{nodes} ready: {plan.bootstrap_servers}, {elapsed_ms:.0f} ms")

    cluster = LocalCluster(plan.nodes, paths, tell)
    try:
        with around.holding_signals():
            cluster.launch()
        cluster.wait_until_ready(_START_SECONDS)
        _create_topics(plan.bootstrap_servers, topics)
        if not run:
            return around.wait_for_signal(announce)
        announce()
        return around.run(run, plan.bootstrap_servers)
    finally:
        around.end(cluster.kill)
        cluster.stop(is_kept=is_kept)


def _create_topics(bootstrap_servers: str, topics: Sequence[SeedTopic]) -> None:
    from odradek.client.blocking import BlockingClient

    if not topics:
        return
    with BlockingClient(bootstrap_servers) as client:
        for name, partitions, factor in topics:
            (result,) = client.call(client.admin.create_topics, {name: partitions}, replication_factor=factor)
            code = ErrorCode(result.error_code)
            if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                raise kafka_failure(f"topic {name}", name, KafkaError(code, result.error_message))
