"""Several real nodes inside the process that uses them, each on an event loop in a thread of its own.

Up to three are broker and controller each; of more, the first three are controllers. One alone is a `Broker`
as it is. What a test does to a node is done to its thread and its sockets: the others see what they would
see of a process that was stopped, or of a network that loses its packets.
"""

import errno
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NamedTuple

from odradek.broker.faults import PlantedErrors
from odradek.broker.node import Node
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.raft.roles import Follower, Leader, Observer
from odradek.testing.broker import Broker
from odradek.testing.cluster_broker import ClusterBroker, Shared
from odradek.testing.contents import Contents
from odradek.testing.settings import as_texts

WHOLE_SECONDS: Final = 60.0
"""How long a cluster may take until all of its nodes serve again."""
_POLL_SECONDS: Final = 0.01
_HURRY_SECONDS: Final = 0.02
_LEAP_SECONDS: Final = 0.25
"""Less than what a node takes for a stall of its own: timers of a node that stalls begin again."""
_TRIES: Final = 3


def _defaults(brokers: int) -> dict[str, str]:
    """Up to three replicas, also of what coordinators write: a broker that is down takes nothing with it."""
    replicas = str(min(3, brokers))
    return {
        "broker.heartbeat.interval.ms": "200",  # a broker that leaves waits until the others have sent theirs
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, brokers - 1)),
    }


class Cluster:
    """`with Cluster(3) as cluster:` Kafka at `cluster.bootstrap_servers`, gone in the end.

    `config` holds Kafka's broker settings, for all brokers. `brokers` has them by their ids.
    """

    def __init__(
        self, brokers: int = 3, config: Mapping[str, str | bool | int | float] | None = None
    ) -> None:
        if isinstance(brokers, bool) or not isinstance(brokers, int) or brokers < 1:
            raise ValueError(f"brokers={brokers!r}: give a whole number of at least 1")
        self.config = as_texts(config)
        self.brokers: dict[int, Broker] = {}
        self.bootstrap_servers = ""
        self._is_whole = True
        self._faults = 0
        self._count = brokers
        self._shared = Shared()
        self._folder: str | None = None

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster of {self._count} at {self.bootstrap_servers or 'no address yet'}>"

    # --- start and end --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all nodes. When this returns, each of them serves."""
        assert not self.brokers, "the cluster is already running"
        if self._count == 1:
            broker = Broker(self.config)
            broker.start()
            self.brokers = {broker.node_id: broker}
            self.bootstrap_servers = broker.bootstrap_servers
            return
        for tries_left in reversed(range(_TRIES)):
            try:
                self._start_several()
                return
            except OSError as e:
                self.close()
                if e.errno != errno.EADDRINUSE or not tries_left:
                    raise  # somebody else may take a port that was free a moment ago
            except BaseException:
                self.close()
                raise

    def _start_several(self) -> None:
        from odradek.cli.node.local_directories import format_cluster, free_ports

        self._folder = tempfile.mkdtemp(prefix="odradek-")
        plan = format_cluster(
            self._folder, free_ports(self._count), {**_defaults(self._count), **self.config}
        )
        self.bootstrap_servers = plan.bootstrap_servers
        self.brokers = {node.node_id: ClusterBroker(node.properties, self._shared) for node in plan.nodes}
        self._all_at_once(Broker.start)
        self.wait_until_whole()

    def _all_at_once(self, step: Callable[[Broker], None], *, hurries: bool = False) -> None:
        """On every broker; raises the first error when all are done."""
        with ThreadPoolExecutor(self._count) as pool:
            steps = [pool.submit(step, broker) for broker in self.brokers.values()]
            while hurries and wait(steps, _HURRY_SECONDS).not_done:
                self._shared.shift.seconds += _LEAP_SECONDS
                for broker in self.brokers.values():
                    broker.wake()
        for done in steps:
            done.result()

    def close(self) -> None:
        """Stop all nodes, and remove what they wrote.

        The last ones look for a controller that would let them go. None is left: their time passes quickly.
        """
        try:
            self._all_at_once(Broker.close, hurries=True)
        finally:
            self.brokers = {}
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    # --- what is there --------------------------------------------------------------------------------

    @property
    def is_reusable(self) -> bool:
        """Whether another test may use it: it lives in the present, and what was done to it is over."""
        return self._is_whole and not any(broker.shift.seconds for broker in self.brokers.values())

    def leader_of(self, named: str | tuple[str, int]) -> int | None:
        """The broker that leads a partition: `("orders", 0)` or `"orders-0"`; of a topic alone, its first."""
        return self._leader(self.partition_named(named))

    def partition_named(self, named: str | tuple[str, int]) -> TopicPartition:
        """`orders-2` may be a topic, too: it is, if it has a leader, and partition 2 of `orders` has none."""
        if isinstance(named, tuple):
            return TopicPartition(*named)
        topic, _, index = named.rpartition("-")
        first = TopicPartition(named, 0)
        if not topic or not index.isdecimal():
            return first
        tp = TopicPartition(topic, int(index))
        return first if self._leader(tp) is None and self._leader(first) is not None else tp

    def _leader(self, tp: TopicPartition) -> int | None:
        found = self._any_running().look(lambda node: node.metadata.image.leader_of(tp))
        return None if found in (None, NO_LEADER) else found

    def controller_id(self) -> int | None:
        """The broker whose controller is the active one, if any is."""
        return next(
            (n for n, b in self._running().items() if b.look(lambda node: node.quorum.is_active)), None
        )

    def contents(self) -> Contents:
        """The topics and groups that there are."""
        found = [broker.contents() for broker in self._running().values()]
        topics = {topic_id: name for each in found for topic_id, name in each.topics.items()}
        return Contents(topics, tuple(dict.fromkeys(name for each in found for name in each.groups)))

    def delete(self, contents: Contents) -> None:
        """Delete topics and groups; gone on all brokers when this returns, but for groups with members."""
        running = self._running().values()
        for broker in running:
            own = {*broker.contents().groups} if contents.groups else set()
            broker.delete(Contents({}, tuple(name for name in contents.groups if name in own)))
        if contents.topics:
            self._any_running().delete(Contents(contents.topics, ()))
            for broker in running:
                broker.run(_gone(broker, contents))

    def log_mark(self) -> int:
        """This moment of the log of all nodes, for `log_tail`."""
        return self._first().log_mark()

    def log_tail(self, since: int = 0) -> list[str]:
        """The last lines of the log of all nodes, from a mark on."""
        return self._first().log_tail(since)

    def _first(self) -> Broker:
        return next(iter(self.brokers.values()))

    def _running(self) -> dict[int, Broker]:
        return {n: b for n, b in self.brokers.items() if b.node is not None and not b.is_paused}

    def _any_running(self) -> Broker:
        running = self._running()
        assert running, "no broker is running"
        return next(iter(running.values()))

    # --- what is done to it ---------------------------------------------------------------------------

    @property
    def errors(self) -> PlantedErrors:
        """Of all brokers together."""
        return self._first().errors

    def down(self, broker_id: int) -> AbstractContextManager[None]:
        """A broker is stopped inside the block. It comes back with its address and its data."""
        broker = self.brokers[broker_id]
        return self._fault(broker.stop, broker.start)

    def paused(self, broker_id: int) -> AbstractContextManager[None]:
        """A broker stands still inside the block."""
        broker = self.brokers[broker_id]
        return self._fault(broker.pause, broker.resume)

    def partitioned(self, a: int, b: int) -> AbstractContextManager[None]:
        """Two brokers do not reach each other inside the block. Clients reach both."""

        def change(how: Callable[[int, int], None]) -> None:
            how(a, b)
            for broker_id in (a, b):
                broker = self.brokers[broker_id]
                assert isinstance(broker, ClusterBroker)
                broker.obey_cuts()

        wires = self._shared.wires
        return self._fault(lambda: change(wires.cut), lambda: change(wires.mend))

    @contextmanager
    def _fault(self, begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
        """Between both calls; when the last of several is over, the cluster heals."""
        self._is_whole = False
        self._faults += 1
        begin()
        try:
            yield
        finally:
            end()
            self._faults -= 1
            if not self._faults:
                self.wait_until_whole()

    def revive(self) -> None:
        """Start what a test has stopped, and take its planted errors back."""
        self.errors.clear()
        down = [broker for broker in self.brokers.values() if broker.node is None]
        for broker in down:
            broker.start()
        if down:
            self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Until all brokers serve, all of them know the same controller, and all replicas are in sync.
        TimeoutError."""
        deadline = time.monotonic() + WHOLE_SECONDS
        self._is_whole = False
        while not self._all_serve():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cluster did not become whole within {WHOLE_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)
        self._is_whole = True

    def _all_serve(self) -> bool:
        controller_id = self.controller_id()
        if controller_id is None:
            return False
        offset = self.brokers[controller_id].look(lambda node: node.metadata.image.offset)
        views = [broker.look(_view) for broker in self.brokers.values()]
        return all(
            view.controller_id == controller_id and view.offset >= offset and view.serving == {*self.brokers}
            for view in views
        ) and self.brokers[controller_id].look(_all_in_sync)

    def advance(self, seconds: float) -> None:
        """Let the broker's time pass without waiting for it. ValueError where there are several."""
        if self._count > 1:
            raise ValueError("the clock of several brokers cannot be moved; one broker alone has one to move")
        self._first().advance(seconds)


class _View(NamedTuple):
    """What a node knows: the controller that it follows, the brokers that serve, how far it has read."""

    controller_id: int | None
    serving: set[int]
    offset: int


def _view(node: Node) -> _View:
    raft, image = node.quorum.raft, node.metadata.image
    follows = isinstance(raft.node.role, (Leader, Follower, Observer))
    serving = {broker.id for broker in image.brokers.values() if broker.is_active}
    return _View(raft.leader_id if follows else None, serving, image.offset)


def _all_in_sync(node: Node) -> bool:
    return all(
        len(partition.isr) == len(partition.replicas)
        for topic in node.metadata.image.topics_by_id.values()
        for partition in topic.partitions.values()
    )


async def _gone(broker: Broker, contents: Contents) -> None:
    assert broker.node is not None
    await broker.node.metadata.until(lambda image: not image.topics_by_id.keys() & contents.topics.keys())
