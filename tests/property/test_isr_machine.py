"""A leader, its followers and a controller in any order of events: answers are late, lost or overtaken by the
metadata. Whoever is in the controller's ISR has every committed record: it may be elected any moment."""

import random
from pathlib import Path
from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.metadata.image import PartitionRegistration
from odradek.wire import responses
from tests.unit.log.support import batch
from tests.unit.replication.support import MAX_LAG_MS, ME, TOPIC, Surroundings, led, opened

REPLICAS = (ME, 2, 3)
STEPS = 400
ACTIONS: dict[str, tuple[Any, ...]] = {
    "append": (1, 3),
    "fetch": (2, 3),
    "receive": (2, 3),
    "catch_up": (2, 3),
    "pass_ms": (1, MAX_LAG_MS // 2, MAX_LAG_MS + 1),
    "decide": (True, True, False),
    "answer": (True, False),
    "publish": (1,),
    "fence": (2, 3),
    "unfence": (2, 3),
}


class Machine:
    def __init__(self, path: Path, min_isr: int, isr: tuple[int, ...]) -> None:
        self.around = Surroundings({1: 10, 2: 20, 3: 30})
        self.partition = opened(path, led(*isr, replicas=REPLICAS), self.around, min_insync_replicas=min_isr)
        self.leader = self.partition.require_leader()
        self.ends = {2: 0, 3: 0}  # what followers really have
        self.isr = isr  # as committed by the controller
        self.epoch = 0
        self.fenced: set[int] = set()
        self.unpublished: list[PartitionRegistration | int] = []  # changes of the partition, or of a broker
        self.response: Any = None
        self.high_watermark = 0

    def commit(self, isr: tuple[int, ...]) -> None:
        self.isr, self.epoch = isr, self.epoch + 1
        self.unpublished.append(led(*isr, replicas=REPLICAS, at=self.epoch))

    def append(self, count: int) -> None:
        self.partition.append_as_leader([batch(count)], acks_all=False)

    def fetch(self, broker_id: int) -> None:
        self.partition.record_fetch(broker_id, self.ends[broker_id], 0, 10 * broker_id)

    def receive(self, broker_id: int) -> None:
        end = self.partition.log.log_end_offset
        self.ends[broker_id] = min(end, self.ends[broker_id] + 3)

    def catch_up(self, broker_id: int) -> None:
        self.ends[broker_id] = self.partition.log.log_end_offset
        self.fetch(broker_id)

    def pass_ms(self, ms: int) -> None:
        self.around.clock.ms += ms
        self.leader.tick()

    def decide(self, is_willing: bool) -> None:
        """The controller gets what is proposed, if no request is on its way, and decides."""
        if self.response is not None:
            return
        request = self.around.proposed()
        if request is None:
            return
        types = responses.alter_partition
        (asked,) = request.topics[0].partitions
        proposed, error = tuple(asked.new_isr), ErrorCode.NONE
        if asked.partition_epoch < self.epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif self.fenced & set(proposed) or not is_willing:
            error = ErrorCode.INELIGIBLE_REPLICA
        else:
            self.commit(proposed)
        row = types.PartitionData(
            partition_index=0, error_code=error, isr=self.isr, leader_epoch=0, partition_epoch=self.epoch
        )
        topic = types.TopicData(topic_id=TOPIC.id, partitions=[row])
        self.response = types.AlterPartitionResponse(topics=[topic])

    def answer(self, arrives: bool) -> None:
        if self.response is None:
            return
        if arrives:
            self.around.answer(self.response)
        else:
            self.around.context.proposals.failed()
        self.response = None

    def publish(self, count: int) -> None:
        for change in self.unpublished[:count]:
            if isinstance(change, PartitionRegistration):
                self.partition.apply(change)
            else:
                self.around.register(abs(change), 10 * abs(change), fenced=change < 0)
        del self.unpublished[:count]

    def fence(self, broker_id: int) -> None:
        if broker_id not in self.fenced:
            self.fenced.add(broker_id)
            self.unpublished.append(-broker_id)
            if broker_id in self.isr:
                self.commit(tuple(member for member in self.isr if member != broker_id))

    def unfence(self, broker_id: int) -> None:
        if broker_id in self.fenced:
            self.fenced.remove(broker_id)
            self.unpublished.append(broker_id)

    def check(self, min_isr: int, known: int) -> None:
        """`known` members were in the ISR of the leader before the event."""
        before, self.high_watermark = self.high_watermark, self.partition.log.high_watermark
        assert before <= self.high_watermark <= self.partition.log.log_end_offset
        for member in self.isr:
            assert member == ME or self.ends[member] >= self.high_watermark, f"{member} may be elected"
        if self.high_watermark > before:
            assert max(known, len(self.leader.isr.members)) >= min_isr


@pytest.mark.parametrize("seed", range(100))
def test_whoever_may_be_elected_has_all_committed_records(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    min_isr = rng.choice((1, 1, 2))
    machine = Machine(tmp_path, min_isr, rng.choice([(ME,), (ME, 2), REPLICAS]))
    weights = [rng.choice((1, 4, 16)) for _ in ACTIONS]  # what is rare in one run is common in another
    for name in rng.choices(list(ACTIONS), weights, k=STEPS):
        known = len(machine.leader.isr.members)
        getattr(machine, name)(rng.choice(ACTIONS[name]))
        machine.check(min_isr, known)
