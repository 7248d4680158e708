"""`make soak-topics`: creates and deletes thousands of topics, several times, on a disk.

After each step it reports its time, the memory of the node and its peak, its descriptors, the content of its
directory, and how long the short requests of a second connection waited. A hook that the node's interpreter
loads at its start reports the pauses of the garbage collector.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.hostile.sides import Process
from tests.hostile.soak import observed
from tests.hostile.world import Size, World
from tests.support.node import NodeProcess

NOTHING = Size(topics=1, wide=1, groups=1, transactional_ids=1, consumer_groups=1)
ASK_S = 600.0
IDLE_S = 5.0
GC_HOOK = """
import gc, os, time
_began = [0.0]
def _note(phase, info):
    if phase == "start":
        _began[0] = time.perf_counter()
    else:
        took_ms = (time.perf_counter() - _began[0]) * 1e3
        if took_ms >= 1:
            with open(os.environ["ODRADEK_GC_LOG"], "a") as out:
                out.write(f"{info['generation']} {took_ms:.1f}\\n")
if "ODRADEK_GC_LOG" in os.environ:
    gc.callbacks.append(_note)
"""


class Disk(NamedTuple):
    """What a data directory holds."""

    partitions: int
    deleted: int
    metadata_mb: float
    snapshots: int

    @classmethod
    def of(cls, data_dir: Path) -> "Disk":
        names = [name for name in os.listdir(data_dir) if (data_dir / name).is_dir()]
        metadata = list((data_dir / "__cluster_metadata-0").iterdir())
        return cls(
            sum(name.startswith("many-") and not name.endswith("-delete") for name in names),
            sum(name.endswith("-delete") for name in names),
            sum(path.stat().st_size for path in metadata if path.suffix in (".log", ".checkpoint")) / 1e6,
            sum(path.suffix == ".checkpoint" for path in metadata),
        )


class Pauses:
    """What the garbage collector of the node told since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0

    def __str__(self) -> str:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        news, self._seen = lines[self._seen :], len(lines)
        oldest = [float(line.split()[1]) for line in news if line.startswith("2 ")]
        if not oldest:
            return "none"
        return f"{len(oldest)} of gen 2, longest {max(oldest):.0f} ms, {sum(oldest) / 1e3:.1f} s in all"


@contextmanager
def hooked(directory: Path) -> Iterator[Pauses]:
    """Have interpreters that start in this block tell of their garbage collections."""
    (directory / "hook").mkdir()
    (directory / "hook" / "sitecustomize.py").write_text(GC_HOOK)
    given = {"PYTHONPATH": str(directory / "hook"), "ODRADEK_GC_LOG": str(directory / "gc.log")}
    before = {key: os.environ.get(key) for key in given}
    os.environ.update(given)
    try:
        yield Pauses(directory / "gc.log")
    finally:
        for key, value in before.items():
            os.environ.pop(key)
            if value is not None:
                os.environ[key] = value


def delete_topics(world: World, client: object, names: list[str]) -> None:
    types = request_types(ApiKey.DELETE_TOPICS)
    states = [types.DeleteTopicState(name=name) for name in names]
    answer = world.call(client, ApiKey.DELETE_TOPICS, 6, topics=states, timeout=600_000)
    assert not any(row.error_code for row in answer.responses)


class Soak:
    """A node, and what is told of each step."""

    def __init__(self, node: NodeProcess, pauses: Pauses) -> None:
        self._node = node
        self._pauses = pauses
        self._process = Process(node.bootstrap, node.pid, ASK_S)
        self.world = World(self._process, NOTHING)
        print(f"{'':<22}{'s':>7}{'MB':>7}{'peak':>7}{'wait ms':>9}{'max':>7}{'fds':>7}  on disk; pauses")
        self.tell("before", lambda: "")

    def tell(self, what: str, work: Callable[[], str]) -> None:
        outcome = observed(self.world, work)
        disk = Disk.of(self._node.data_dir)
        descriptors = len(os.listdir(f"/proc/{self._node.pid}/fd"))
        print(
            f"{what:<22}{outcome.took_s:>7.1f}{self._process.rss_mb():>7.0f}{outcome.rss_mb:>7.0f}"
            f"{outcome.p50_ms:>9.1f}{outcome.max_ms:>7.0f}{descriptors:>7}  {disk.partitions:,} logs, "
            f"{disk.deleted:,} to be deleted, {disk.metadata_mb:.1f} MB of metadata in {disk.snapshots} "
            f"snapshots; {self._pauses}",
            flush=True,
        )

    def round(self, topics: int, at_once: int, delay_s: float) -> None:
        names = [f"many-{i:06d}" for i in range(topics)]
        pieces = [names[i : i + at_once] for i in range(0, topics, at_once)]

        def create() -> str:
            with self._process.client() as client:
                for piece in pieces:
                    self.world.create_topics(client, piece)
            return ""

        def delete() -> str:
            with self._process.client() as client:
                for piece in pieces:
                    delete_topics(self.world, client, piece)
            return ""

        def wait() -> str:
            deadline = time.monotonic() + delay_s + 600
            time.sleep(delay_s)
            while Disk.of(self._node.data_dir).deleted and time.monotonic() < deadline:
                time.sleep(1)
            time.sleep(IDLE_S)
            return ""

        self.tell(f"create {topics:,}", create)
        self.tell("idle", lambda: time.sleep(IDLE_S) or "")
        self.tell(f"delete {topics:,}", delete)
        self.tell("deleted from the disk", wait)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak-topics", description=__doc__)
    parser.add_argument("--topics", type=int, default=50_000, help="how many (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=1_000, help="in one request (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="how often (default: %(default)s)")
    parser.add_argument("--delay-s", type=float, default=60, help="file.delete.delay.ms (default: 60 s)")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="odradek-soak-") as directory,
        hooked(Path(directory)) as pauses,
    ):
        delay = f"log.segment.delete.delay.ms={int(args.delay_s * 1000)}"
        node = NodeProcess(Path(directory) / "data", "--set", delay)
        try:
            soak = Soak(node, pauses)
            for _ in range(args.rounds):
                soak.round(args.topics, args.at_once, args.delay_s)
        finally:
            node.kill()


if __name__ == "__main__":
    main()
