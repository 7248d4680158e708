"""A real node inside the process that uses it, on an event loop in a thread of its own.

Starting it takes a fraction of a second and its faults and its clock are within reach. Files live in a
temporary directory and are never synced: no test survives a power cut.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from odradek.broker.faults import PlantedErrors
from odradek.broker.node import Node
from odradek.core.configs import NodeConfig, node_defaults
from odradek.core.types import INTERNAL_TOPICS
from odradek.runtime.real import RealDisk, RealRuntime
from odradek.testing.clock import Shift, ShiftedClock, ShiftedLoop
from odradek.testing.contents import Contents
from odradek.testing.inline import done_at_once
from odradek.testing.log_tail import LogTail
from odradek.testing.settings import as_texts
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

T = TypeVar("T")

_WAKE_SECONDS = 0.1


def _skip(fd: object) -> None:
    pass


class _UnsyncedDisk(RealDisk):
    """Files whose loss nobody would mourn."""

    __slots__ = ()

    fsync = fdatasync = staticmethod(_skip)

    def fsync_dir(self, path: str) -> None:
        pass


class _TestRuntime(RealRuntime):
    """The machine, with nothing beside the loop: while a test moves the clock, no work may lag behind it."""

    def __init__(self, shift: Shift) -> None:
        super().__init__()
        self.disk = _UnsyncedDisk()
        self.clock = ShiftedClock(self.clock, shift)

    def for_quorum(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return self.offload(work)

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return self.offload(work)

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return done_at_once(work)


class Broker:
    """`with Broker() as broker:` a Kafka broker at `broker.bootstrap_servers`, gone in the end.

    `config` holds Kafka's broker settings; `data_dir` keeps the data when it is given. `stop` and `start`
    may be called in turn: address and data stay the same. `pause` and `resume` may, too.
    """

    _log_prefix = ""

    def __init__(
        self, config: Mapping[str, str | bool | int | float] | None = None, *, data_dir: str | None = None
    ) -> None:
        self.config = as_texts(config)
        self.shift = Shift()
        self.errors = PlantedErrors()
        self.node: Node | None = None
        self.data_dir = data_dir
        self._own_dir = data_dir is None
        self._port = 0
        self._loop: ShiftedLoop | None = None
        self._thread: threading.Thread | None = None
        self._log = LogTail()
        self._resumed: threading.Event | None = None

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Broker at {self.bootstrap_servers}>" if self.node is not None else "<Broker, stopped>"

    @property
    def node_id(self) -> int:
        return int(self.config.get("node.id", 1))

    @property
    def bootstrap_servers(self) -> str:
        assert self._port, "the broker was never started"
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the node; ready when this returns."""
        assert self.node is None, "the broker is already running"
        is_new = self.data_dir is None
        data_dir = self.data_dir = self.data_dir or tempfile.mkdtemp(prefix="odradek-")
        try:
            overrides = {**self.config, "log.dirs": data_dir}
            overrides.setdefault("listeners", node_defaults(port=self._port)["listeners"])
            config, _ = NodeConfig.from_sources({}, overrides)
            self._start_node(config)
        except BaseException:
            if is_new:
                self._remove_data()
            raise

    def _start_node(self, config: NodeConfig) -> None:
        self._loop = ShiftedLoop(self.shift)
        self._thread = threading.Thread(target=self._loop.run_forever, name="odradek-broker", daemon=True)
        self._thread.start()
        self._log.attach(self._thread, self._log_prefix)
        try:
            node = Node(config, self.make_runtime())
            node.faults = self.errors
            self.run(node.start())
        except BaseException:
            self._end_loop()
            raise
        self.node = node
        self._port = node.address[1]

    def make_runtime(self) -> RealRuntime:
        """The machine as the node sees it."""
        return _TestRuntime(self.shift)

    def wake(self) -> None:
        """Let a loop that sleeps look at the clock. Nothing happens where it has ended."""
        if self._loop is None:
            return
        woken = threading.Event()
        try:
            self._loop.call_soon_threadsafe(woken.set)
        except RuntimeError:
            return
        woken.wait(_WAKE_SECONDS)

    def pause(self) -> None:
        """Let the node stand still, as a stopped process does: its sockets stay open, nobody answers."""
        assert self._loop is not None and self._resumed is None, "only a broker that runs can be paused"
        resumed = self._resumed = threading.Event()
        paused = threading.Event()

        def stand_still() -> None:
            paused.set()
            resumed.wait()

        self._loop.call_soon_threadsafe(stand_still)
        paused.wait()

    def resume(self) -> None:
        assert self._resumed is not None, "the broker is not paused"
        self._resumed.set()
        self._resumed = None

    @property
    def is_paused(self) -> bool:
        return self._resumed is not None

    def stop(self) -> None:
        """Stop the node cleanly; its data stays."""
        if self.node is not None:
            node, self.node = self.node, None
            self.run(node.stop())
            self._end_loop()

    def close(self) -> None:
        """Stop the node and remove what it wrote to its temporary directory."""
        self.stop()
        self._remove_data()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something on the node's event loop."""
        assert self._loop is not None
        assert self._resumed is None, "the broker is paused"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def look(self, function: Callable[[Node], T]) -> T:
        """Read the node's state on its own thread."""

        async def looked() -> T:
            assert self.node is not None, "the broker is down"
            return function(self.node)

        return self.run(looked())

    def contents(self) -> Contents:
        """The topics and groups that there are."""

        def found(node: Node) -> Contents:
            topics = node.metadata.image.topics_by_id
            return Contents(
                {
                    topic_id: topic.name
                    for topic_id, topic in topics.items()
                    if topic.name not in INTERNAL_TOPICS
                },
                tuple(name for shard in node.groups.shards() for name in shard.groups),
            )

        return self.look(found)

    def delete(self, contents: Contents) -> None:
        """Delete topics and groups; gone when this returns, but for groups that have members."""
        if contents.topics or contents.groups:
            self.run(self._delete(contents))

    async def _delete(self, contents: Contents) -> None:
        assert self.node is not None, "the broker is down"
        if contents.topics:
            types = request_types(ApiKey.DELETE_TOPICS)
            states = [types.DeleteTopicState(name=None, topic_id=topic_id) for topic_id in contents.topics]
            await self.node.controller.call(ApiKey.DELETE_TOPICS, types.DeleteTopicsRequest(topics=states))
        for name in contents.groups:
            await self.node.groups.delete_group(name)

    def advance(self, seconds: float) -> None:
        """Let the broker's time pass without waiting for it."""
        assert self._loop is not None
        self.run(self._loop.advance(seconds))

    def log_mark(self) -> int:
        """This moment of the node's log, for `log_tail`."""
        return self._log.seen

    def log_tail(self, since: int = 0) -> list[str]:
        """The last lines of the node's log, from a mark on."""
        return self._log.since(since)

    def _remove_data(self) -> None:
        if self._own_dir and self.data_dir is not None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
            self.data_dir = None

    def _end_loop(self) -> None:
        assert self._loop is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._log.detach(self._thread)
