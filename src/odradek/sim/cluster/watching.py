"""Looks at every node of a simulated cluster after each turn of the loop, and tells the checker what is new.

It only reads: what a node shows to others, how its log stands, and whom it takes for the leader.
"""

from collections.abc import Callable, Mapping
from typing import Final

from odradek.broker.node import Node
from odradek.metadata.digest import image_digest
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.raft.driver import RaftDriver
from odradek.sim.cluster.checks import ONE_CONTROLLER, Checker
from odradek.sim.world.cluster import NodeLike, SimHost

_NOBODY: Final = -1


def raft_of(node: NodeLike | None) -> RaftDriver | None:
    """The node's replica of the metadata log; None where its start has not come to it yet."""
    raft: RaftDriver | None = getattr(getattr(node, "quorum", None), "raft", None)
    return raft


def leads(host: SimHost) -> bool:
    raft = raft_of(host.node)
    return raft is not None and raft.is_leader


class _Watched:
    """What was last seen of a node in this life."""

    __slots__ = ("broker_epoch", "end_offset", "image", "is_leader", "life")

    def __init__(self, life: int) -> None:
        self.life = life
        self.image: MetadataImage = EMPTY_IMAGE
        self.end_offset = _NOBODY
        self.is_leader = False
        self.broker_epoch = _NOBODY


class Watcher:
    """`look` after every turn."""

    def __init__(self, hosts: Mapping[str, SimHost], checker: Checker) -> None:
        self._hosts = hosts
        self._checker = checker
        self._watched: dict[str, _Watched] = {}
        self.on_leader: Callable[[SimHost], None] = lambda host: None

    def look(self) -> None:
        for name, host in self._hosts.items():
            node = host.node
            if node is None:
                continue
            assert isinstance(node, Node)
            watched = self._watched.get(name)
            if watched is None or watched.life != host.lives:
                watched = self._watched[name] = _Watched(host.lives)
            raft = raft_of(node)
            if raft is not None:
                self._look_at_quorum(host, raft, watched)
                if node.quorum.is_active and not raft.is_leader:
                    self._checker.fail(ONE_CONTROLLER, f"{name} is active, and {raft.leader_id} leads")
            if node.metadata.image is not watched.image:
                self._look_at_image(name, node.metadata.image, watched)
            lifecycle = getattr(node, "lifecycle", None)
            if lifecycle is not None and lifecycle.broker_epoch != watched.broker_epoch:
                watched.broker_epoch = lifecycle.broker_epoch
                incarnation = lifecycle.incarnation_id
                self._checker.broker_epoch(node.config.node_id, watched.broker_epoch, incarnation)

    def _look_at_quorum(self, host: SimHost, raft: RaftDriver, watched: _Watched) -> None:
        counters = self._checker.counters
        log = raft.log
        end_offset = log.log_end_offset
        if end_offset != watched.end_offset:
            if end_offset < watched.end_offset:
                counters.truncated += 1
            elif _NOBODY < watched.end_offset < log.log_start_offset:
                counters.snapshots += 1
            watched.end_offset = end_offset
        is_leader = raft.is_leader
        if is_leader != watched.is_leader:
            watched.is_leader = is_leader
            if is_leader:
                self._checker.leads(host.name, raft.epoch)
                self.on_leader(host)
            elif not host.is_stopping:
                counters.deposed += 1

    def _look_at_image(self, name: str, image: MetadataImage, watched: _Watched) -> None:
        before, watched.image = watched.image.offset, image
        self._checker.image_shown(name, image.offset, image_digest(image), before)
        for broker in image.brokers.values():
            self._checker.broker_epoch(broker.id, broker.epoch, broker.incarnation_id)
