"""The transactional producer: records and offsets that readers see all together or not at all.

Its states are transaction_states.py's table, what errors mean transaction_errors.py's, requests to
coordinators transaction_requests.py's; records travel as those of any producer do (producer.py).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from odradek.client.batches import NOBODY
from odradek.client.client import Client
from odradek.client.producer import Producer
from odradek.client.sender import Delivery
from odradek.client.transaction_errors import (
    FENCED,
    AbortableError,
    FatalError,
    OutcomeUnknownError,
    Step,
    Verdict,
    judge,
)
from odradek.client.transaction_requests import (
    LAST_PRODUCE_V1,
    GroupMetadata,
    RefusedError,
    TransactionRequests,
    UnansweredError,
)
from odradek.client.transaction_states import State, may_follow
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_ID, ProducerIdAndEpoch, TopicPartition
from odradek.records.batch import Headers
from odradek.runtime.scope import Scope

_log = logging.getLogger(__name__)

_FEATURE = "transaction.version"
_EPOCH_PER_TRANSACTION = 2
_CLOSE_TIMEOUT_MS = 5_000


class PreparedTransaction(NamedTuple):
    """The name of a prepared transaction for an external coordinator. As text: `4711:3`."""

    producer_id: int
    producer_epoch: int

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.producer_epoch}"

    @classmethod
    def parse(cls, text: str) -> "PreparedTransaction":
        producer_id, _, producer_epoch = text.partition(":")
        return cls(int(producer_id), int(producer_epoch))


class TransactionalProducer:
    """Use with `async with`: `init_transactions` once, then `begin`, `send`, `send_offsets`, and `commit` or
    `abort`, again and again; or `async with producer.transaction()` for one of them.

    AbortableError: abort, then go on. FatalError: close this producer. OutcomeUnknownError from `commit` or
    `abort`: call the same again. Every call gives up after `max_block_ms`.
    """

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        *,
        transaction_timeout_ms: int = 60_000,
        enable_2pc: bool = False,
        max_block_ms: int = 60_000,
        **options: Any,
    ) -> None:
        """`options` are those of `Producer`: compression, linger_ms, batch_bytes, and so on."""
        self.transactional_id: str | None = transactional_id
        self.state = State.UNINITIALIZED
        self._client = client
        self._terms = _TransactionTerms(self, transactional_id)
        self._producer = Producer(client, terms=self._terms, **options)
        self._sender = self._producer.sender
        self._requests = TransactionRequests(client, transactional_id)
        self._timeout_ms = transaction_timeout_ms
        self._enable_2pc = enable_2pc
        self._max_block_s = max_block_ms / 1000
        self._error: KafkaError | None = None
        self._started = False  # may the coordinator know of this transaction?
        self._bump_due = False
        self._keep_prepared = False
        self._prepared: PreparedTransaction | None = None
        self._new: dict[TopicPartition, None] = {}
        self._added: dict[TopicPartition, None] = {}
        self._confirmed = False
        self._scope: Scope | None = None

    async def __aenter__(self) -> "TransactionalProducer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # The life of a producer

    async def init_transactions(self, *, keep_prepared: bool = False) -> PreparedTransaction | None:
        """Take the transactional id: others that have it are fenced, and what they left open is aborted.

        With two-phase commit, `keep_prepared` keeps a prepared transaction; it is returned, for `complete`.
        """
        if self.state is State.ABORTABLE_ERROR and self._terms.identity is None:
            self._move(State.UNINITIALIZED)
        self._check(State.UNINITIALIZED, State.INITIALIZING)
        if self.state is State.UNINITIALIZED:
            self._keep_prepared = keep_prepared
            self._move(State.INITIALIZING)
        await self._initialize(self._deadline())
        return self._prepared

    def begin(self) -> None:
        self._check(State.READY)
        self._started = self._confirmed = False
        self._new.clear()
        self._added.clear()
        self._move(State.IN_TRANSACTION)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> "asyncio.Future[Delivery]":
        """Queue a record for the transaction, as `Producer.send` does."""
        self._check(State.IN_TRANSACTION)
        return await self._producer.send(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def send_offsets(self, offsets: Mapping[TopicPartition, int], group: GroupMetadata | str) -> None:
        """Commit offsets of a group with the transaction: those of the next records to be read.

        `group` is best a consumer's `group_metadata`; a mere name says nothing about membership.
        """
        self._check(State.IN_TRANSACTION)
        if not offsets:
            return
        group = GroupMetadata(group) if isinstance(group, str) else group
        deadline, identity = self._deadline(), self._identity()
        self._started = True
        try:
            if self._terms.version_1:
                await self._requests.add_offsets(identity, group.group_id, deadline)
                self._confirmed = True
            await self._requests.commit_offsets(
                identity, offsets, group, deadline, version_1=self._terms.version_1
            )
        except UnansweredError as e:
            self._fail(ErrorCode.TRANSACTION_ABORTABLE, Verdict.ABORTABLE, str(e))
        except RefusedError as e:
            self._refused(e)
        self._check(State.IN_TRANSACTION)

    async def commit(self) -> None:
        """Deliver what was sent and make it visible."""
        self._check(State.IN_TRANSACTION, State.PREPARED, State.COMMITTING)
        deadline = self._deadline()
        if self.state is State.IN_TRANSACTION:
            await self._deliver_all(deadline)
        if self.state is not State.COMMITTING:
            self._move(State.COMMITTING)
        await self._end(True, deadline)

    async def abort(self) -> None:
        """Give up what was sent: no reader at read_committed will see it."""
        self._check(State.IN_TRANSACTION, State.PREPARED, State.ABORTING, State.ABORTABLE_ERROR)
        if self._terms.identity is None:
            raise RuntimeError(f"{self.transactional_id} has no transaction: call init_transactions again")
        deadline = self._deadline()
        if self.state is not State.ABORTING:
            self._move(State.ABORTING)
        await self._stop_adding()
        try:
            async with asyncio.timeout_at(deadline):
                gap = await self._sender.discard(
                    KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the transaction was aborted")
                )
        except TimeoutError:
            raise TimeoutError(
                f"{self.transactional_id}: records are still in flight: call abort again"
            ) from None
        self._bump_due = self._bump_due or (gap and self._terms.version_1)
        await self._end(False, deadline)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["TransactionalProducer"]:
        """A transaction for a block: committed at its end, aborted if anything is raised in it."""
        self.begin()
        try:
            yield self
            await self.commit()
        except BaseException:
            if self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
                await self.abort()
            raise

    async def close(self) -> None:
        """Stop. A transaction that is open is aborted, a prepared one is left as it is."""
        if self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR, State.ABORTING) and self._started:
            self._max_block_s = min(self._max_block_s, _CLOSE_TIMEOUT_MS / 1000)
            try:
                await self.abort()
            except (KafkaError, OSError) as e:
                _log.warning("%r: the transaction was not aborted at close: %s", self.transactional_id, e)
        await self._stop_adding()
        self._sender.stop(RuntimeError("the producer is closed"))
        await self._producer.close()
        self._requests.close()

    # Two-phase commit (KIP-939)

    async def prepare(self) -> PreparedTransaction:
        """Deliver what was sent, then wait for the decision: `complete`, of this producer or a later one."""
        if not self._enable_2pc:
            raise RuntimeError("prepare needs enable_2pc")
        self._check(State.IN_TRANSACTION)
        await self._deliver_all(self._deadline())
        self._move(State.PREPARED)
        self._prepared = PreparedTransaction(*self._identity())
        return self._prepared

    async def complete(self, decided: PreparedTransaction) -> bool:
        """Commit if this is the transaction that was decided to be committed, else abort; which it was."""
        self._check(State.PREPARED)
        commits = decided == self._prepared
        await (self.commit() if commits else self.abort())
        return commits

    # Moving through the states

    def _move(self, state: State) -> None:
        assert may_follow(state, self.state), f"from {self.state} to {state}"
        self.state = state

    def _check(self, *allowed: State) -> None:
        """Raise why a call is not possible now, if it is not."""
        if self.state is State.FATAL_ERROR:
            assert self._error is not None
            raise FatalError(self._error.code, self._error.message, place=self._error.place)
        if self.state in allowed:
            return
        if self.state is State.ABORTABLE_ERROR:
            assert self._error is not None
            raise AbortableError(self._error.code, self._error.message, place=self._error.place)
        names = " or ".join(state.name for state in allowed)
        raise RuntimeError(f"{self.transactional_id} is {self.state.name}, not {names}")

    def _refused(self, error: RefusedError) -> None:
        code = E.PRODUCER_FENCED if error.code in FENCED else error.code
        self._fail(code, error.verdict, error.message, error.step.value)

    def _fail(
        self, code: ErrorCode, verdict: Verdict, message: str | None = None, place: str | None = None
    ) -> None:
        """The transaction, or the whole producer, is lost."""
        if self.state is State.FATAL_ERROR:
            return
        if verdict is Verdict.BUMP:
            self._bump_due = self._bump_due or self._terms.version_1
        fatal = verdict is Verdict.FATAL or not may_follow(State.ABORTABLE_ERROR, self.state)
        self._error = KafkaError(code, message, place=place)
        self._move(State.FATAL_ERROR if fatal else State.ABORTABLE_ERROR)
        if fatal:
            self._sender.stop(self._error)
        self._sender.wake()

    def on_batch_failure(self, error: Exception) -> Exception | None:
        """A batch failed for good; an error given back ends the sending."""
        if self.state is State.ABORTING:
            return None
        code, message = ErrorCode.TRANSACTION_ABORTABLE, f"records could not be delivered: {error}"
        if isinstance(error, KafkaError) and not (error.retriable or error.code is E.INVALID_TXN_STATE):
            code, message = error.code, error.message or "abort the transaction"
        self._bump_due = self._bump_due or self._terms.version_1
        self._fail(code, judge(Step.PRODUCE, code), message, getattr(error, "place", None))
        return self._error if self.state is State.FATAL_ERROR else None

    async def _initialize(self, deadline: float) -> None:
        try:
            response = await self._requests.init(
                self._terms.identity or NOBODY,
                self._timeout_ms,
                deadline,
                enable_2pc=self._enable_2pc,
                keep_prepared=self._keep_prepared,
            )
        except RefusedError as e:
            self._refused(e)
            self._check()
            raise
        self._terms.identity = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._bump_due = False
        self._terms.version_1 = self._is_version_1()
        if self._keep_prepared and response.ongoing_txn_producer_id != NO_PRODUCER_ID:
            self._prepared = PreparedTransaction(
                response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch
            )
            self._started = self._confirmed = True
            self._move(State.PREPARED)
        else:
            self._move(State.READY)
        self._keep_prepared = False

    async def _deliver_all(self, deadline: float) -> None:
        """Until everything sent is acknowledged."""
        try:
            async with asyncio.timeout_at(deadline):
                with self._sender.hurrying():
                    while self._sender.pending and self.state is State.IN_TRANSACTION:
                        await self._sender.progress()
        except TimeoutError:
            raise TimeoutError(
                f"{self.transactional_id}: records were not delivered in time, nothing is committed"
            ) from None
        self._check(State.IN_TRANSACTION)

    async def _end(self, committed: bool, deadline: float) -> None:
        if self._started:
            try:
                response = await self._requests.end(
                    self._identity(), committed, deadline, version_1=self._terms.version_1
                )
            except UnansweredError as e:
                if not e.sent:
                    raise
                raise OutcomeUnknownError(f"{e}; it may have taken effect anyway") from e
            except RefusedError as e:
                if not (e.code is E.INVALID_TXN_STATE and self._was_never_open(committed)):
                    self._refused(e)
                    self._check()
            else:
                if response.producer_id != NO_PRODUCER_ID:
                    self._terms.identity = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._started = False
        self._prepared = None
        version_1 = self._is_version_1()
        self._bump_due = self._bump_due or (self._terms.version_1 and not version_1)
        self._terms.version_1 = version_1
        if not self._bump_due:
            self._move(State.READY)
            return
        self._move(State.INITIALIZING)
        try:
            await self._initialize(deadline)
        except UnansweredError as e:
            # The transaction has ended; what is missing is said by the next `begin`.
            _log.warning("%r: call init_transactions again: %s", self.transactional_id, e)

    def _was_never_open(self, committed: bool) -> bool:
        """Aborting what the coordinator was asked to open, and never said that it had."""
        return not committed and self._terms.version_1 and not self._confirmed

    def _is_version_1(self) -> bool:
        return self._client.finalized_feature(_FEATURE) < _EPOCH_PER_TRANSACTION

    def _identity(self) -> ProducerIdAndEpoch:
        assert self._terms.identity is not None
        return self._terms.identity

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._max_block_s

    # Partitions of a transaction of version 1 are announced before anything is written to them

    def on_queued(self, tp: TopicPartition) -> None:
        self._check(State.IN_TRANSACTION)
        self._started = True
        if self._terms.version_1 and tp not in self._added and tp not in self._new:
            self._new[tp] = None
            if self._scope is None:
                self._scope = Scope(self._sender.stop)
            if not len(self._scope):
                self._scope.spawn(self._add_partitions(), name="add partitions")

    def is_added(self, tp: TopicPartition) -> bool:
        return tp in self._added

    async def _add_partitions(self) -> None:
        try:
            while self._new and self.state is State.IN_TRANSACTION:
                partitions = list(self._new)
                await self._requests.add_partitions(self._identity(), partitions, self._deadline())
                self._confirmed = True
                for tp in partitions:
                    self._new.pop(tp, None)
                    self._added[tp] = None
                self._sender.wake()
        except UnansweredError as e:
            self._fail(ErrorCode.TRANSACTION_ABORTABLE, Verdict.ABORTABLE, str(e))
        except RefusedError as e:
            self._refused(e)

    async def _stop_adding(self) -> None:
        if self._scope is not None:
            scope, self._scope = self._scope, None
            await scope.close()


E = ErrorCode


class _TransactionTerms:
    """What the sending side asks a transactional producer."""

    recovers = False

    def __init__(self, producer: TransactionalProducer, transactional_id: str) -> None:
        self.transactional_id: str | None = transactional_id
        self.identity: ProducerIdAndEpoch | None = None
        self.version_1 = False
        self._producer = producer

    @property
    def max_produce_version(self) -> int | None:
        return LAST_PRODUCE_V1 if self.version_1 else None

    async def prepare(self) -> None:
        """The identity is taken by `init_transactions`."""

    async def renew(self) -> None:
        raise AssertionError("only the coordinator gives a transactional producer another identity")

    def on_queued(self, tp: TopicPartition) -> None:
        self._producer.on_queued(tp)

    def admits(self, tp: TopicPartition) -> bool:
        return not self.version_1 or self._producer.is_added(tp)

    def on_failure(self, error: Exception) -> Exception | None:
        return self._producer.on_batch_failure(error)
