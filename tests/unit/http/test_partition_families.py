"""Replicas in numbers, under Kafka's names: each is moved by what it counts. The test is the controller."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.http.partition_families import partitions
from odradek.records.control import EndTransactionMarker
from odradek.replication.manager import ReplicaManager
from odradek.wire import responses
from tests.unit.log.support import batch
from tests.unit.replication.support import MAX_LAG_MS, TOPIC, Surroundings, led, managed, with_partition

MANAGER, PARTITION = "kafka_server_replicamanager", "kafka_cluster_partition"
COUNTS = ("underreplicatedpartitions", "atminisrpartitioncount", "underminisrpartitioncount")
STATES = ("replicascount", "insyncreplicascount", "underreplicated", "atminisr", "underminisr")


class Numbers:
    """A node that leads t-0, with replicas on 1, 2 and 3."""

    def __init__(self, path: Path, **changes: Any) -> None:
        self.around = Surroundings({1: 10, 2: 20, 3: 30})
        self.replicas: ReplicaManager = managed(path, around=self.around, **changes)
        self.partition = with_partition(self.replicas, led(1, 2, 3))

    def isr(self, *isr: int, at: int) -> None:
        """The metadata changes the ISR, and nobody has proposed it."""
        self.partition.apply(led(*isr, replicas=(1, 2, 3), at=at))

    def read(self) -> dict[str, float]:
        node: Any = SimpleNamespace(
            replicas=self.replicas,
            metrics=self.around.metrics,
            transactions=SimpleNamespace(config=SimpleNamespace(max_timeout_ms=900_000)),
        )
        return {
            sample.name: sample.value
            for family in partitions(node, 0)
            if family is not None
            for sample in family.samples
        }

    def counts(self) -> list[float]:
        values = self.read()
        return [values[f"{MANAGER}_{name}"] for name in COUNTS]

    def states(self) -> list[float]:
        values = self.read()
        return [values[f"{PARTITION}_{name}"] for name in STATES]

    def changes(self) -> list[float]:
        values = self.read()
        return [
            values[f"{MANAGER}_{name}_total"] for name in ("isrshrinks", "isrexpands", "failedisrupdates")
        ]

    def answer(self, *isr: int, at: int = 0, error: ErrorCode = ErrorCode.NONE) -> None:
        types = responses.alter_partition
        assert self.around.proposed() is not None
        row = types.PartitionData(
            partition_index=0, error_code=error, leader_epoch=0, partition_epoch=at, isr=isr
        )
        topic = types.TopicData(topic_id=TOPIC.id, partitions=[row])
        self.around.answer(types.AlterPartitionResponse(topics=[topic]))


def test_replicas_that_are_out_of_sync_are_counted(tmp_path: Path) -> None:
    numbers = Numbers(tmp_path, min_insync_replicas=2)
    assert (numbers.counts(), numbers.states()) == ([0, 0, 0], [3, 3, 0, 0, 0])
    numbers.isr(1, 3, at=1)
    assert (numbers.counts(), numbers.states()) == ([1, 1, 0], [3, 2, 1, 1, 0])
    numbers.isr(1, at=2)
    assert (numbers.counts(), numbers.states()) == ([1, 0, 1], [3, 1, 1, 0, 1])


def test_min_isr_is_the_effective_one(tmp_path: Path) -> None:
    """A value above the number of replicas would be one that no ISR reaches."""
    numbers = Numbers(tmp_path, min_insync_replicas=5)
    assert (numbers.counts(), numbers.states()) == ([0, 1, 0], [3, 3, 0, 1, 0])


def test_changes_of_the_isr_are_counted(tmp_path: Path) -> None:
    numbers = Numbers(tmp_path)
    assert numbers.changes() == [0, 0, 0]
    numbers.around.clock.ms += MAX_LAG_MS + 1
    assert numbers.replicas.tick_isrs().is_ready
    assert numbers.counts() == [0, 0, 0], "proposed is not committed"
    numbers.answer(1, at=1)
    assert numbers.changes() == [1, 0, 0] and numbers.counts()[0] == 1
    numbers.partition.record_fetch(2, 0, 0, 20)
    numbers.answer(error=ErrorCode.INELIGIBLE_REPLICA)
    assert numbers.changes() == [1, 0, 1]
    numbers.partition.record_fetch(2, 0, 0, 20)
    numbers.answer(1, 2, at=2)
    assert numbers.changes() == [1, 1, 1]
    numbers.isr(1, 2, 3, at=3)
    assert numbers.changes() == [1, 1, 1], "this leader had nothing to do with it"


def test_an_open_transaction_holds_the_last_stable_offset_back(tmp_path: Path) -> None:
    numbers = Numbers(tmp_path)
    numbers.isr(1, at=1)
    partition = numbers.replicas.partition(TopicPartition(TOPIC.name, 0))
    written = batch(3, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append_as_leader([batch(2), written], acks_all=True)
    assert numbers.read()[f"{PARTITION}_laststableoffsetlag"] == 3
    partition.append_marker((7, 0), EndTransactionMarker(committed=True, coordinator_epoch=0), 0, 0)
    assert numbers.read()[f"{PARTITION}_laststableoffsetlag"] == 0
