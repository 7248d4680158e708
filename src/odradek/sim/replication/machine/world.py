"""MachineWorld: brokers with one partition, a controller and a network, on virtual time. Quick: no asyncio.

What happens when is drawn from the seed. story.py has the faults. The checker sees every log and every leader
after each event.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any

from odradek.core.configs import TopicConfig
from odradek.core.errors import KafkaError
from odradek.metadata.image import MetadataImage
from odradek.replication.isr import IsrState
from odradek.replication.leader import PartitionLeader
from odradek.sim.quorum.network import Network
from odradek.sim.replication.checker import Checker
from odradek.sim.replication.machine.controller import NODE_CONFIG, MachineController
from odradek.sim.replication.machine.log import TOPIC_ID, Disk, MachineLog
from odradek.sim.replication.machine.node import Asked, MachineNode
from odradek.sim.replication.truth import LeaderView

Action = Callable[[], None]
CONTROLLER = 0
LOST_MS = 120
LATE_MS = 1_500
"""How late the copy of a request may arrive: others were sent and answered in between."""


class MachineWorld:
    """`lives` are the nodes that run. The controller is number 0 of the network."""

    def __init__(
        self,
        seed: int,
        random: Random,
        brokers: int,
        *,
        elr: bool,
        min_isr: int,
        unclean: bool,
        flushes: bool,
    ) -> None:
        self.random = random
        self.now_ms = 0
        self.events = 0
        self.sink: Callable[[str], None] | None = None
        self.network = Network(random)
        self.slow = 0.0
        """How many proposals wait at the controller for a long time."""
        self.fetch_ambushes = self.proposal_ambushes = 0
        """How many of the next fetches of a follower, or proposals with it, find it with fewer records."""
        ids = tuple(range(1, brokers + 1))
        self.controller = MachineController(ids, elr=elr, min_isr=min_isr, unclean=unclean)
        self.config = TopicConfig.resolve(NODE_CONFIG, {"min.insync.replicas": str(min_isr)})
        self.flushes = flushes
        self._unclean = unclean
        self.disks = {n: Disk() for n in ids}
        self.lives: dict[int, MachineNode] = {}
        self.checker = Checker()
        self.truth = self.checker.add((TOPIC_ID, 0), "t-0", is_compacted=False, is_flushed=flushes)
        self.truth.decided(self.controller.partition, allow_unclean=unclean)
        self._shown = self.controller.image
        self._queue: list[tuple[int, int, Action]] = []
        self._sequence = self._crcs = 0
        self._views: dict[int, tuple[PartitionLeader, IsrState, LeaderView]] = {}
        self._arrivals: dict[int, int] = {}
        for broker in self.controller.image.brokers.values():
            self._live(broker.id, broker.epoch)

    # --- time -----------------------------------------------------------------------------------------

    def at(self, time_ms: int, action: Action) -> None:
        self._sequence += 1
        heappush(self._queue, (time_ms, self._sequence, action))

    def after(self, delay_ms: int, action: Action) -> None:
        self.at(self.now_ms + delay_ms, action)

    def run(self, until_ms: int, done: Callable[[], bool] | None = None) -> bool:
        """Let things happen until a time, or until `done` came true."""
        queue = self._queue
        while queue and queue[0][0] <= until_ms:
            self.now_ms, _, action = heappop(queue)
            action()
            self.events += 1
            self._look()
            if done is not None and done():
                return True
        self.now_ms = until_ms
        return False

    def trace(self, text: str) -> None:
        if self.sink is not None:
            self.sink(f"{self.now_ms:7} {text}")

    # --- nodes ----------------------------------------------------------------------------------------

    def _live(self, node_id: int, epoch: int) -> MachineNode:
        disk = self.disks[node_id]
        replica = self.truth.replica(node_id)
        replica.returned(disk.batches, 0, disk.end)

        def changed(is_truncation: bool) -> None:
            if is_truncation:
                self.checker.counters.truncated += 1
                self.trace(f"{node_id} truncates to {disk.end}")
                replica.replace(disk.batches, 0, disk.end)
                self.truth.check()
            else:
                replica.append(batch for batch in disk.batches[len(replica.log) :])

        log = MachineLog(disk, self.config, self._next_crc, changed, flushes=self.flushes)
        node = self.lives[node_id] = MachineNode(self, node_id, log, epoch)
        self._views.pop(node_id, None)
        self._arrivals[node_id] = self.now_ms
        node.show(self.controller.image)
        return node

    def _next_crc(self) -> int:
        self._crcs += 1
        return self._crcs

    def crash(self, node_id: int, *, power: bool) -> None:
        node = self.lives.pop(node_id, None)
        if node is None:
            return
        self.trace(f"{node_id} {'loses power' if power else 'is killed'}")
        self.checker.counters.leaders_killed += self.controller.partition.leader == node_id
        node.is_alive = False
        disk = self.disks[node_id]
        disk.clean_epoch = None
        if power:
            self.checker.power_lost(node_id)
            disk.lose_power(self.random)

    def stop(self, node_id: int) -> None:
        """An orderly stop: the controller lets it go, everything is flushed."""
        node = self.lives.pop(node_id, None)
        if node is None:
            return
        self.trace(f"{node_id} stops")
        self.decide(partial(self.controller.fence, node_id))
        node.is_alive = False
        disk = self.disks[node_id]
        disk.flushed, disk.high_watermark = disk.end, node.log.high_watermark
        disk.clean_epoch = node.broker_epoch

    def start(self, node_id: int) -> None:
        if node_id in self.lives:
            return
        disk = self.disks[node_id]
        epoch = self.decide(partial(self.controller.register, node_id, disk.clean_epoch))
        disk.clean_epoch = None
        self.trace(f"{node_id} starts with broker epoch {epoch}, {disk.end} records")
        node = self._live(node_id, epoch)
        node.later(5 + self.random.randrange(30), partial(self._heartbeat, node))

    def _heartbeat(self, node: MachineNode) -> None:
        """Unfence a node that the controller hears. One that is cut off is fenced by the story."""
        if not self.is_cut(node.node_id):
            self.decide(partial(self.controller.unfence, node.node_id, node.broker_epoch))
        node.later(40 + self.random.randrange(40), partial(self._heartbeat, node))

    def is_cut(self, node_id: int) -> bool:
        cut = self.network.cut
        return (node_id, CONTROLLER) in cut or (CONTROLLER, node_id) in cut

    # --- the controller -------------------------------------------------------------------------------

    def decide(self, decision: Callable[[], Any]) -> Any:
        before = self.controller.image
        result = decision()
        image = self.controller.image
        if image is not before:
            self._committed(before, image)
        return result

    def _committed(self, before: MetadataImage, image: MetadataImage) -> None:
        old, new = before.topics_by_id[TOPIC_ID].partitions[0], image.topics_by_id[TOPIC_ID].partitions[0]
        if new is not old:
            self.trace(f"controller: {new}")
            self.truth.decided(new, allow_unclean=self._unclean)
        for broker in image.brokers.values():
            self.checker.broker_epoch(broker.id, broker.epoch)
        for node in self.lives.values():
            self._bring(node, image)

    def _bring(self, node: MachineNode, image: MetadataImage) -> None:
        """Each node hears of each decision, in order, after a while; a node that is cut off much later."""
        delay = 1 + int(self.random.random() * self.network.most_ms)
        at = max(self._arrivals[node.node_id], self.now_ms + delay)
        self._arrivals[node.node_id] = at
        self.at(at, partial(self._arrives, node, image))

    def _arrives(self, node: MachineNode, image: MetadataImage) -> None:
        if not node.is_alive or image.offset <= node.image.offset:
            return
        if (CONTROLLER, node.node_id) in self.network.cut:
            self.after(20, partial(self._arrives, node, image))
        else:
            node.do(partial(self._show, node, image))

    def _show(self, node: MachineNode, image: MetadataImage) -> None:
        if image.offset > node.image.offset:
            node.show(image)

    def ask_controller(self, node: MachineNode, request: Any, answered: Callable[[Any], None]) -> None:
        delay = self.network.delay_ms(node.node_id, CONTROLLER)
        if delay is None:
            node.later(LOST_MS, partial(answered, None))
            return
        if self.random.random() < self.slow:
            delay += self.random.randrange(LATE_MS)
        joining = [m for m in self._named(request) if m not in self.controller.partition.isr]
        if joining and self.proposal_ambushes:
            self.proposal_ambushes -= 1
            delay += self._ambush(joining[0], node.node_id)
        self.after(delay, partial(self._decide_for, node, request, answered))
        if self.network.is_doubled():
            late = delay + self.random.randrange(LATE_MS)
            self.after(late, partial(self._decide_for, node, request, lambda response: None))

    @staticmethod
    def _named(request: Any) -> list[int]:
        return [
            member.broker_id
            for topic in request.topics
            for row in topic.partitions
            for member in row.new_isr_with_epochs
        ]

    def _ambush(self, follower_id: int, leader_id: int) -> int:
        """A request under way says what a follower has. Then the follower loses its power, is back soon, and
        does not reach the leader for a while. Returns how much longer the request takes."""
        if follower_id not in self.lives or self.lives[follower_id].is_paused:
            return 0
        self.crash(follower_id, power=True)
        self.start(follower_id)
        pairs = {(follower_id, leader_id), (leader_id, follower_id)}
        self.network.cut |= pairs
        self.after(300, lambda: self.network.cut.difference_update(pairs))
        return 80 + self.random.randrange(100)

    def _decide_for(self, node: MachineNode, request: Any, answered: Callable[[Any], None]) -> None:
        try:
            response = self.decide(partial(self.controller.alter_partition, request))
        except KafkaError:
            response = None  # refused as a whole: an earlier incarnation asked
        delay = self.network.delay_ms(CONTROLLER, node.node_id)
        if delay is None:
            node.later(LOST_MS, partial(answered, None))
        else:
            node.later(delay, partial(answered, response))

    # --- leaders --------------------------------------------------------------------------------------

    def ask_leader(
        self, node: MachineNode, leader_id: int, asked: Asked, answered: Callable[[Any], None]
    ) -> None:
        delay = self.network.delay_ms(node.node_id, leader_id)
        if delay is None:
            node.later(LOST_MS, partial(answered, None))
            return
        fetch = asked.fetch
        if (
            self.fetch_ambushes
            and fetch is not None
            and fetch.fetch_offset > self.disks[node.node_id].flushed
        ):
            self.fetch_ambushes -= 1
            delay += self._ambush(node.node_id, leader_id)
        self.after(delay, partial(self._serve, node, leader_id, asked, answered))
        if self.network.is_doubled():
            late = delay + self.random.randrange(LATE_MS)
            self.after(late, partial(self._serve, node, leader_id, asked, lambda answer: None))

    def _serve(
        self, node: MachineNode, leader_id: int, asked: Asked, answered: Callable[[Any], None]
    ) -> None:
        leader = self.lives.get(leader_id)
        if leader is None:
            node.later(LOST_MS // 4, partial(answered, None))
            return

        def answer(what: Any) -> None:
            delay = self.network.delay_ms(leader_id, node.node_id)
            if delay is None:
                node.later(LOST_MS, partial(answered, None))
            else:
                node.later(delay, partial(answered, what))

        leader.do(partial(leader.serve, asked, answer))

    # --- the checker ----------------------------------------------------------------------------------

    def _look(self) -> None:
        for node_id, node in self.lives.items():
            leader = node.leader
            known = self._views.get(node_id)
            if leader is None:
                if known is not None:
                    del self._views[node_id]
                continue
            isr, high_watermark = leader.isr, node.log.high_watermark
            if known is not None and known[0] is leader and known[1] is isr:
                before: LeaderView | None = known[2]
                if high_watermark == known[2].high_watermark:
                    continue
            else:
                before = known[2] if known is not None and known[0] is leader else None
            view = LeaderView(leader.epoch, high_watermark, isr.members, isr.maximal, leader.min_isr)
            self._views[node_id] = leader, isr, view
            self.truth.led(node_id, view, before)
