"""TxnClient: one instance of a transactional producer, with the requests of one transaction version.

It is simpler than a real client: the workload decides whether an unanswered request is repeated or given up,
so that the history knows the outcome of every transaction.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_PRODUCER_ID, TopicPartition
from odradek.records.batch import build_batch
from odradek.sim.checkers.txn_history import Txn, TxnFate, TxnHistory
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

TIMEOUT_MS = 3_000
PAUSE_SECONDS = 0.05
PATIENCE_SECONDS = 20.0
EPOCH_PER_TRANSACTION = 2
_ENDED = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_ABORTABLE}
)
"""Errors that end a transaction: another producer took the id, or the transaction timed out."""
# InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, Produce, TxnOffsetCommit, EndTxn
_VERSIONS = {
    1: {
        ApiKey.INIT_PRODUCER_ID: 4,
        ApiKey.ADD_PARTITIONS_TO_TXN: 3,
        ApiKey.ADD_OFFSETS_TO_TXN: 3,
        ApiKey.PRODUCE: 11,
        ApiKey.TXN_OFFSET_COMMIT: 4,
        ApiKey.END_TXN: 4,
    },
    2: {
        ApiKey.INIT_PRODUCER_ID: 6,
        ApiKey.PRODUCE: 13,
        ApiKey.TXN_OFFSET_COMMIT: 5,
        ApiKey.END_TXN: 5,
    },
}


class Over(Exception):
    """This producer instance has ended: it was fenced, or gives up."""


class TxnClient:
    def __init__(
        self,
        transactional_id: str,
        caller: Caller,
        history: TxnHistory,
        topic_ids: dict[str, UUID],
        rng: random.Random,
        *,
        version: int,
        now_ms: Callable[[], int],
    ) -> None:
        self.transactional_id = transactional_id
        self.history = history
        self._caller = caller
        self._topic_ids = topic_ids
        self._rng = rng
        self._version = version
        self._versions = _VERSIONS[version]
        self._now_ms = now_ms
        self._producer = (-1, -1)
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()

    @property
    def caller(self) -> Caller:
        return self._caller

    @property
    def producer(self) -> tuple[int, int]:
        return self._producer

    async def init(self, *, keep_prepared: bool = False) -> bool:
        """Take over the transactional id. With `keep_prepared`, an open transaction is not aborted (two-phase
        commit).

        Returns whether a transaction is open.
        """
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout=TIMEOUT_MS,
            enable2_pc=keep_prepared,
            keep_prepared_txn=keep_prepared,
        )
        answer = await self._until_told(ApiKey.INIT_PRODUCER_ID, request, lambda a: a.error_code)
        self.history.identity_given(self.transactional_id, answer.producer_id)
        self._producer = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        self._added.clear()
        return keep_prepared and answer.ongoing_txn_producer_id != NO_PRODUCER_ID

    async def write(self, txn: Txn, tp: TopicPartition, values: list[bytes]) -> None:
        """Note a batch, and send it until it is acknowledged."""
        if self._version < EPOCH_PER_TRANSACTION and tp not in self._added:
            await self._add(tp)
        types = request_types(ApiKey.PRODUCE)
        sequence = self._sequences.get(tp, 0)
        # Sometimes a batch whose check runs in another thread.
        key, codec = (b"k" * 150_000, 4) if self._rng.random() < 0.03 else (b"k", self._rng.choice((0, 0, 1)))
        data = build_batch(
            [(self._now_ms(), key, value, ()) for value in values],
            codec=codec,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        partition = types.PartitionProduceData(index=tp.partition, records=bytes(data))
        topic = types.TopicProduceData(
            name=tp.topic, topic_id=self._topic_ids[tp.topic], partition_data=[partition]
        )
        request = types.ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout=5_000, topic_data=[topic]
        )
        txn.writes += [(tp, value) for value in values]
        await self._until_told(
            ApiKey.PRODUCE, request, lambda a: a.responses[0].partition_responses[0].error_code
        )
        self._sequences[tp] = sequence + len(values)

    async def commit_offset(self, group: str, tp: TopicPartition, offset: int) -> None:
        """Commit a group's offset in the transaction."""
        producer_id, epoch = self._producer
        if self._version < EPOCH_PER_TRANSACTION:
            types = request_types(ApiKey.ADD_OFFSETS_TO_TXN)
            request = types.AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=group,
            )
            await self._until_told(ApiKey.ADD_OFFSETS_TO_TXN, request, lambda a: a.error_code)
        types = request_types(ApiKey.TXN_OFFSET_COMMIT)
        partition = types.TxnOffsetCommitRequestPartition(
            partition_index=tp.partition, committed_offset=offset, committed_metadata=""
        )
        request = types.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[types.TxnOffsetCommitRequestTopic(name=tp.topic, partitions=[partition])],
        )
        await self._until_told(
            ApiKey.TXN_OFFSET_COMMIT, request, lambda a: a.topics[0].partitions[0].error_code
        )

    async def end(self, txn: Txn, *, commit: bool) -> None:
        """Commit or abort, and note the known outcome."""
        types = request_types(ApiKey.END_TXN)
        request = types.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commit,
        )
        if commit:
            await self._caller.connect()
            txn.commit_sent, txn.fate = True, TxnFate.UNKNOWN
        attempts = 0

        def noted(_: Any) -> None:
            nonlocal attempts
            attempts += 1

        try:
            answer = await self._until_told(
                ApiKey.END_TXN, request, lambda a: a.error_code, before=noted, give_up=0.3
            )
        except Over:
            raise
        except Refused as e:
            if attempts == 1 and commit:
                txn.fate = TxnFate.ABORTED
            raise Over(str(e)) from e
        if commit:
            self.history.committed(txn)
        self._ended(answer)

    async def end_impatiently(self, txn: Txn) -> None:
        """Request a commit once, and abort on a new connection if no answer comes soon."""
        await self._caller.connect()
        txn.commit_sent, txn.fate = True, TxnFate.UNKNOWN
        types = request_types(ApiKey.END_TXN)
        request = types.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=True,
        )
        version = self._versions[ApiKey.END_TXN]
        patience_s = self._rng.choice((0.002, 0.01, 1.0))
        try:
            answer = await asyncio.wait_for(
                self._caller.call(ApiKey.END_TXN, request, version=version), patience_s
            )
        except (NoAnswer, TimeoutError):
            self._caller.close()
            answer = None
        if answer is None or answer.error_code:
            await self.end(txn, commit=False)
            txn.fate = TxnFate.ABORTED
            return
        self.history.committed(txn)
        self._ended(answer)

    def _ended(self, answer: Any) -> None:
        self._added.clear()
        if self._version >= EPOCH_PER_TRANSACTION:
            self._producer = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    async def _add(self, tp: TopicPartition) -> None:
        types = request_types(ApiKey.ADD_PARTITIONS_TO_TXN)
        topic = types.AddPartitionsToTxnTopic(name=tp.topic, partitions=[tp.partition])
        transaction = types.AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            verify_only=False,
            topics=[topic],
        )
        request = types.AddPartitionsToTxnRequest(transactions=[transaction])
        await self._until_told(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            request,
            lambda a: (
                a.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code
            ),
        )
        self._added.add(tp)

    async def _until_told(
        self,
        api_key: ApiKey,
        request: Any,
        code_of: Callable[[Any], int],
        *,
        before: Callable[[Any], None] | None = None,
        give_up: float = 0.05,
    ) -> Any:
        """Repeat a request until it succeeds. Raises Over, or Refused if the broker has refused it."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                await self._caller.connect()
                if before is not None:
                    before(request)
                answer = await self._caller.call(api_key, request, version=self._versions[api_key])
            except NoAnswer as e:
                if self._rng.random() < give_up:
                    raise Over(f"no answer to {api_key.name}") from e
            else:
                code = ErrorCode(code_of(answer))
                if code is ErrorCode.NONE:
                    return answer
                if code in _ENDED or (code is ErrorCode.INVALID_TXN_STATE and api_key is ApiKey.END_TXN):
                    # A commit of a transaction that the coordinator has aborted for a successor looks like a
                    # wrong retry.
                    raise Refused(f"{api_key.name}: {code.name}")
                if not code.retriable and code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self.history.oddities.append(
                        f"{self.transactional_id}: {api_key.name} failed with {code.name}"
                    )
                    raise Refused(code.name)
            if asyncio.get_running_loop().time() > deadline:
                raise Over(f"{api_key.name} takes too long")
            await asyncio.sleep(PAUSE_SECONDS)


class Refused(Over):
    """The broker refused the request."""
