"""A write that arrives before its producer's last transaction has ended: the requests to the coordinator."""

import asyncio

import pytest

from odradek.coordinators.transactions.add_partitions import AddPartitionsToTxnManager
from odradek.coordinators.transactions.metadata import EPOCH_PER_TRANSACTION
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.runtime.reply import Reply
from odradek.sim.world.world import World

PRODUCER, PARTITIONS = ProducerIdAndEpoch(7, 3), [TopicPartition("t", 0)]
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS


class Coordinator:
    """Refuses some questions, then answers; on another broker it would be asked in the same way."""

    def __init__(self, *refusals: ErrorCode) -> None:
        self.refusals = list(refusals)
        self.asked_at: list[float] = []

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: list[TopicPartition],
        client_version: int,
    ) -> Reply[ErrorCode]:
        assert (transactional_id, producer, partitions) == ("x", PRODUCER, PARTITIONS)
        assert client_version == EPOCH_PER_TRANSACTION
        self.asked_at.append(asyncio.get_running_loop().time())
        if self.refusals:
            return Reply.failed(KafkaError(self.refusals.pop(0)))
        return Reply(ErrorCode.NONE)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> Reply[list[ErrorCode]]:
        return Reply([ErrorCode.NONE] * len(partitions))


def add(coordinator: Coordinator) -> None:
    manager = AddPartitionsToTxnManager(coordinator, verifies=True, retry_backoff_ms=20, max_backoff_ms=50)
    World(1).run(manager.add_with_retries("x", PRODUCER, PARTITIONS))


def test_it_is_asked_again_until_the_last_transaction_is_over() -> None:
    coordinator = Coordinator(BUSY, BUSY)
    add(coordinator)
    first, *later = coordinator.asked_at
    assert [round((at - first) * 1000) for at in later] == [20, 40]


def test_patience_ends_at_the_longest_backoff() -> None:
    coordinator = Coordinator(*[BUSY] * 9)
    with pytest.raises(KafkaError) as refused:
        add(coordinator)
    assert refused.value.code is BUSY
    assert len(coordinator.asked_at) == 4


def test_any_other_refusal_is_the_answer() -> None:
    coordinator = Coordinator(ErrorCode.PRODUCER_FENCED)
    with pytest.raises(KafkaError) as refused:
        add(coordinator)
    assert refused.value.code is ErrorCode.PRODUCER_FENCED
    assert len(coordinator.asked_at) == 1
