"""The requests of a transactional producer to coordinators, each tried again until its deadline.

What an answer means is transaction_errors.py's; what the producer does about it, transactional.py's.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from odradek.client.admin import by_topic
from odradek.client.client import GROUP_COORDINATOR, TRANSACTION_COORDINATOR, Client, may_pass
from odradek.client.transaction_errors import MOVED, Step, Verdict, judge
from odradek.client.watching import MovedError
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

LAST_PRODUCE_V1, _LAST_ADD_PARTITIONS, _LAST_COMMIT_OFFSETS_V1, _LAST_END_V1 = 11, 3, 4, 4
"""The last versions that belong to transactions of version 1; later ones raise the epoch by themselves."""

_FIRST_INIT_WITH_2PC = 6
_CONCURRENT_PAUSE_S = 0.02
E = ErrorCode


class GroupMetadata(NamedTuple):
    """As which member offsets are committed; the coordinator refuses them to a member of the past."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class RefusedError(KafkaError):
    """A coordinator's answer that trying again does not change."""

    def __init__(self, step: Step, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message, place=step.value)
        self.step = step
        self.verdict = judge(step, code)


class UnansweredError(TimeoutError):
    """The deadline passed. `sent` tells whether a coordinator may have got the request."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class TransactionRequests:
    """Uses connections of its own: a produce that waits for replicas must not hold up a commit. A `channel`
    that is given is shared, and left open."""

    def __init__(self, client: Client, transactional_id: str, channel: str | None = None) -> None:
        self._client = client
        self._id = transactional_id
        self._own_channel = channel is None
        self._channel = client.new_channel("transaction") if channel is None else channel

    def close(self) -> None:
        if self._own_channel:
            self._client.close_channel(self._channel)

    async def init(
        self,
        identity: ProducerIdAndEpoch,
        timeout_ms: int,
        deadline: float,
        *,
        enable_2pc: bool,
        keep_prepared: bool,
    ) -> Any:
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout=timeout_ms,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            enable2_pc=enable_2pc,
            keep_prepared_txn=keep_prepared,
        )
        version = _FIRST_INIT_WITH_2PC if enable_2pc else None
        return await self._ask(
            Step.INIT, ApiKey.INIT_PRODUCER_ID, request, _own_code, deadline, version=version
        )

    async def add_partitions(
        self, identity: ProducerIdAndEpoch, partitions: Sequence[TopicPartition], deadline: float
    ) -> None:
        types = request_types(ApiKey.ADD_PARTITIONS_TO_TXN)
        transaction = types.AddPartitionsToTxnTransaction(
            transactional_id=self._id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            verify_only=False,
            topics=[
                types.AddPartitionsToTxnTopic(name=name, partitions=[tp.partition for tp in group])
                for name, group in by_topic(partitions).items()
            ],
        )
        request = types.AddPartitionsToTxnRequest(transactions=[transaction])

        def codes(response: Any) -> list[int]:
            return [response.error_code] + [
                partition.partition_error_code
                for result in response.results_by_transaction
                for topic in result.topic_results
                for partition in topic.results_by_partition
            ]

        api_key = ApiKey.ADD_PARTITIONS_TO_TXN
        await self._ask(
            Step.ADD_PARTITIONS, api_key, request, codes, deadline, max_version=_LAST_ADD_PARTITIONS
        )

    async def add_offsets(self, identity: ProducerIdAndEpoch, group_id: str, deadline: float) -> None:
        types = request_types(ApiKey.ADD_OFFSETS_TO_TXN)
        request = types.AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            group_id=group_id,
        )
        await self._ask(Step.ADD_OFFSETS, ApiKey.ADD_OFFSETS_TO_TXN, request, _own_code, deadline)

    async def commit_offsets(
        self,
        identity: ProducerIdAndEpoch,
        offsets: Mapping[TopicPartition, int],
        group: GroupMetadata,
        deadline: float,
        *,
        version_1: bool,
    ) -> None:
        types = request_types(ApiKey.TXN_OFFSET_COMMIT)
        request = types.TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[
                types.TxnOffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        types.TxnOffsetCommitRequestPartition(
                            partition_index=tp.partition, committed_offset=offsets[tp], committed_metadata=""
                        )
                        for tp in of_topic
                    ],
                )
                for name, of_topic in by_topic(list(offsets)).items()
            ],
        )

        def codes(response: Any) -> list[int]:
            return [p.error_code for topic in response.topics for p in topic.partitions]

        await self._ask(
            Step.COMMIT_OFFSETS,
            ApiKey.TXN_OFFSET_COMMIT,
            request,
            codes,
            deadline,
            group=group.group_id,
            max_version=_LAST_COMMIT_OFFSETS_V1 if version_1 else None,
        )

    async def end(
        self, identity: ProducerIdAndEpoch, committed: bool, deadline: float, *, version_1: bool
    ) -> Any:
        types = request_types(ApiKey.END_TXN)
        request = types.EndTxnRequest(
            transactional_id=self._id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=committed,
        )
        max_version = _LAST_END_V1 if version_1 else None
        return await self._ask(
            Step.END, ApiKey.END_TXN, request, _own_code, deadline, max_version=max_version
        )

    async def _ask(
        self,
        step: Step,
        api_key: ApiKey,
        request: Any,
        codes_of: Callable[[Any], list[int]],
        deadline: float,
        *,
        group: str | None = None,
        version: int | None = None,
        max_version: int | None = None,
    ) -> Any:
        """The first answer without an error. RefusedError, or UnansweredError at the deadline."""
        key, key_type = (self._id, TRANSACTION_COORDINATOR) if group is None else (group, GROUP_COORDINATOR)
        loop = asyncio.get_running_loop()
        tries, sent = 0, False
        reason: Exception | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    node_id = await self._find(key, key_type)
                    sent = True
                    work = self._send(step, api_key, request, node_id, version, max_version)
                    response = await self._client.while_coordinating(work, node_id, key, key_type)
                code = worst(step, codes_of(response))
                if code is ErrorCode.NONE:
                    return response
                raise RefusedError(step, code)
            except OSError as e:
                if not isinstance(e, MovedError):
                    self._client.forget_coordinator(key, key_type)
                reason = reason if loop.time() >= deadline and reason else e
                if not may_pass(e):
                    raise
            except RefusedError as e:
                if e.verdict is not Verdict.RETRY:
                    raise
                reason = e
                if e.code in MOVED or (step is Step.COMMIT_OFFSETS and e.code is E.REQUEST_TIMED_OUT):
                    self._client.forget_coordinator(key, key_type)
            pause_s = self._pause_s(reason, tries)
            if loop.time() + pause_s >= deadline:
                raise UnansweredError(
                    f"{self._id}: {step.value} did not succeed in time: {reason}", sent=sent
                ) from reason
            tries += 1
            await asyncio.sleep(pause_s)

    async def _find(self, key: str, key_type: int) -> int:
        try:
            return await self._client.coordinator(key, key_type)
        except KafkaError as e:
            raise RefusedError(Step.FIND_COORDINATOR, e.code, e.message) from e

    async def _send(
        self,
        step: Step,
        api_key: ApiKey,
        request: Any,
        node_id: int,
        version: int | None,
        max_version: int | None,
    ) -> Any:
        try:
            return await self._client.send(
                api_key,
                request,
                node_id=node_id,
                channel=self._channel,
                version=version,
                max_version=max_version,
            )
        except KafkaError as e:  # raised here, not answered: the version is not served, the broker unknown
            raise RefusedError(step, e.code, e.message) from e

    def _pause_s(self, reason: Exception | None, tries: int) -> float:
        if isinstance(reason, RefusedError) and reason.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return _CONCURRENT_PAUSE_S  # the end of the transaction before is a matter of milliseconds
        return self._client.backoff_ms(tries) / 1000


_SEVERITY = (Verdict.FATAL, Verdict.BUMP, Verdict.ABORTABLE, Verdict.RETRY, Verdict.DONE)


def worst(step: Step, codes: Sequence[int]) -> ErrorCode:
    """The code that decides when an answer has several. What was not attempted only follows another's
    error."""
    found = [code_of(code) for code in codes]
    others = [code for code in found if code is not E.OPERATION_NOT_ATTEMPTED]
    decisive = others if any(code is not E.NONE for code in others) else found
    return min(decisive, key=lambda code: _SEVERITY.index(judge(step, code)), default=E.NONE)


def code_of(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _own_code(response: Any) -> list[int]:
    return [response.error_code]
