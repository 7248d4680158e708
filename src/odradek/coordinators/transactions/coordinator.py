"""The transaction coordinator of a node: passes commands to the shard of a transactional id, and sends
markers.

It is independent of protocol versions: `broker/handlers` turns requests into commands. A refusal is the error
of a reply, with the code that the client gets.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from odradek.coordinators.errors import coordinator_error
from odradek.coordinators.host import CoordinatorHost
from odradek.coordinators.slot import PartitionLog
from odradek.coordinators.transactions import commands as c
from odradek.coordinators.transactions.channels import MarkerChannel
from odradek.coordinators.transactions.config import TransactionConfig
from odradek.coordinators.transactions.log_format import record_format
from odradek.coordinators.transactions.markers import MarkerSender
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.shard import TransactionShard
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import (
    NO_TIMEOUT_MS,
    TRANSACTION_STATE_TOPIC,
    ProducerIdAndEpoch,
    TopicPartition,
    coordinator_partition,
)
from odradek.runtime.api import Clock
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Slices

_log = logging.getLogger(__name__)

_FLEXIBLE_LOG = 1  # from this transaction version, values of the log have version 1


class TransactionCoordinator:
    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        *,
        partition_count: Callable[[], int],
        new_producer_id: Callable[[], int],
        server_version: Callable[[], int],
        leader_of: Callable[[TopicPartition], int | None],
        marker_channel: MarkerChannel,
        slices: Slices | None = None,
    ) -> None:
        """`partition_count` is the number of partitions that `__transaction_state` has or will have,
        `server_version` the cluster's transaction version. For the other two see MarkerSender."""
        self.config = config
        self._partition_count = partition_count
        slices = slices or Slices()
        self.host = CoordinatorHost(
            TRANSACTION_STATE_TOPIC,
            lambda epoch: TransactionShard(config, epoch, new_producer_id, server_version),
            record_format(lambda: 1 if server_version() >= _FLEXIBLE_LOG else 0),
            clock,
            commit_timeout_ms=config.commit_timeout_ms,
            load_buffer_bytes=config.load_buffer_bytes,
            perform=self._perform,
            slices=slices,
        )
        self.markers = MarkerSender(leader_of, marker_channel, self._all_heard, slices)
        self._loaded_partitions: int | None = None
        self._scope = Scope(
            lambda error: _log.error(
                "A background task of the transaction coordinator failed", exc_info=error
            )
        )

    # --- life -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to remove unused transactional ids."""
        self._scope.spawn(self._sweep(), name="expire transactional ids")

    async def close(self) -> None:
        await self._scope.close()
        self.markers.close()
        await self.host.close()

    def on_elected(self, partition_index: int, partition_log: PartitionLog) -> None:
        """Lead a partition, unless the number of partitions changed: then the coordinators of ids changed
        too."""
        count = self._partition_count()
        if self._loaded_partitions is not None and self._loaded_partitions != count:
            _log.error(
                "%s now has %d partitions instead of %d: this node does not coordinate partition %d",
                TRANSACTION_STATE_TOPIC,
                count,
                self._loaded_partitions,
                partition_index,
            )
            return
        self._loaded_partitions = count
        self.markers.forget(partition_index)
        self.host.on_elected(partition_index, partition_log)

    def on_resigned(self, partition_index: int) -> None:
        self.host.on_resigned(partition_index)
        self.markers.forget(partition_index)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self.config.remove_interval_ms / 1000)
            for partition_index in self.host.partitions:
                try:
                    removed = await self.host.submit(partition_index, c.ExpireIds())
                except KafkaError as e:
                    _log.warning(
                        "Cannot expire transactional ids of %s-%d: %s",
                        TRANSACTION_STATE_TOPIC,
                        partition_index,
                        e,
                    )
                    continue
                if removed:
                    _log.info(
                        "Expired %d transactional ids of %s-%d",
                        removed,
                        TRANSACTION_STATE_TOPIC,
                        partition_index,
                    )

    # --- markers --------------------------------------------------------------------------------------

    def _perform(self, partition_index: int, effect: c.WriteMarkers) -> None:
        self.markers.send(partition_index, effect)

    def _all_heard(self, partition_index: int, markers: c.WriteMarkers) -> None:
        """Complete a transaction. Retry if the log cannot be written now."""
        command = c.MarkersWritten(markers.transactional_id, markers.producer)

        def noted(reply: Reply[bool]) -> None:
            if not isinstance(reply.error, KafkaError):
                return
            code = reply.error.code
            if coordinator_error(code) is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                asyncio.get_running_loop().call_later(0.1, self._all_heard, partition_index, markers)
            else:
                _log.info(
                    "Another coordinator completes transaction %r: %s", markers.transactional_id, code.name
                )

        self.host.submit(partition_index, command).when_ready(noted)

    # --- lookups --------------------------------------------------------------------------------------

    def partition_for(self, transactional_id: str) -> int:
        return coordinator_partition(transactional_id, self._loaded_partitions or self._partition_count())

    def shards(self) -> Iterator[TransactionShard]:
        """Every loaded shard, for reading only."""
        for shard in self.host.shards():
            assert isinstance(shard, TransactionShard)
            yield shard

    # --- producers ------------------------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        connection: int,
        *,
        enable_2pc: bool = False,
        keep_prepared: bool = False,
    ) -> Reply[c.Initialized]:
        if enable_2pc or keep_prepared:
            if not self.config.two_phase_commit:
                return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            if not enable_2pc:
                return _refused(ErrorCode.INVALID_REQUEST)
            timeout_ms = NO_TIMEOUT_MS
        elif not 0 < timeout_ms <= self.config.max_timeout_ms:
            return _refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        command = c.InitProducerId(
            transactional_id=transactional_id,
            timeout_ms=timeout_ms,
            expected=expected,
            keep_prepared=keep_prepared,
            connection=connection,
        )
        return self._ask(transactional_id, command)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: list[TopicPartition],
        client_version: int,
        connection: int | None = None,
    ) -> Reply[ErrorCode]:
        """NONE when the partitions are part of the transaction. `connection` is None if a broker sends this
        on behalf of its client."""
        if not transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        command = c.AddPartitions(transactional_id, producer, partitions, client_version, connection)
        return self._ask(transactional_id, command)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> Reply[list[ErrorCode]]:
        """One error code per partition: NONE if it is part of the transaction."""
        if not transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        return self._ask(transactional_id, c.VerifyPartitions(transactional_id, producer, partitions))

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        client_version: int,
        connection: int,
        is_acknowledged: bool,
    ) -> Reply[ProducerIdAndEpoch]:
        """The identity that the producer uses next. ProtocolError if the producer has a newer connection."""
        if not transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        command = c.EndTxn(transactional_id, producer, commit, client_version, connection, is_acknowledged)
        return self._ask(transactional_id, command)

    def describe(self, transactional_id: str) -> Reply[TransactionMetadata]:
        if not transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        return self._ask(transactional_id, c.DescribeTransaction(transactional_id))

    async def list(self, command: c.ListTransactions) -> list[TransactionMetadata]:
        """The transactions of all shards. Raises COORDINATOR_LOAD_IN_PROGRESS while one is loading."""
        found: list[TransactionMetadata] = []
        for partition_index in self.host.partitions:
            found.extend(await self.host.submit(partition_index, command))
        return found

    def _ask(self, transactional_id: str, command: Any) -> Reply[Any]:
        return self.host.submit(self.partition_for(transactional_id), command).otherwise(_raise_told)


def _refused(code: ErrorCode) -> Reply[Any]:
    return Reply.failed(KafkaError(code))


def _raise_told(error: KafkaError) -> Any:
    """Refuse with the code for the client."""
    raise KafkaError(coordinator_error(error.code), error.message) from error
