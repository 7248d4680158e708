"""Requests of a partition leader to the coordinator before the first write of a transaction: add the
partition, or verify it.

broker/produce/transactions.py decides which of the two a write needs.
"""

import asyncio

from odradek.coordinators.transactions.channels import TransactionChannel
from odradek.coordinators.transactions.metadata import EPOCH_PER_TRANSACTION
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.runtime.reply import Reply


class AddPartitionsToTxnManager:
    """`verifies` is transaction.partition.verification.enable, which may change while the node runs."""

    __slots__ = ("_channel", "_max_backoff_ms", "_retry_backoff_ms", "verifies")

    def __init__(
        self, channel: TransactionChannel, *, verifies: bool, retry_backoff_ms: int, max_backoff_ms: int
    ) -> None:
        assert retry_backoff_ms > 0
        self._channel = channel
        self._retry_backoff_ms = retry_backoff_ms
        self._max_backoff_ms = max_backoff_ms
        self.verifies = verifies

    def add(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> Reply[ErrorCode]:
        return self._channel.add_partitions(transactional_id, producer, partitions, EPOCH_PER_TRANSACTION)

    def verify(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> Reply[list[ErrorCode]]:
        return self._channel.verify_partitions(transactional_id, producer, partitions)

    async def add_with_retries(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> None:
        """Add partitions. Retry while the producer's last transaction is still ending."""
        left_ms = self._max_backoff_ms
        while True:
            try:
                await self.add(transactional_id, producer, partitions)
                return
            except KafkaError as e:
                if e.code is not ErrorCode.CONCURRENT_TRANSACTIONS or left_ms <= 0:
                    raise
            await asyncio.sleep(self._retry_backoff_ms / 1000)
            left_ms -= self._retry_backoff_ms
