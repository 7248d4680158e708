"""Deciding a batch: fence, read the ledger, write the decision, commit the participants, sweep what is left.

ledger.py has the rules; the driver applies them here, once per batch.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from odradek.client.admin import Admin
from odradek.client.batches import NOBODY
from odradek.client.client import Client, check
from odradek.client.transaction_errors import FENCED, AbortableError, FatalError, OutcomeUnknownError
from odradek.client.transaction_requests import RefusedError, TransactionRequests
from odradek.client.transactional import TransactionalProducer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.spark.ledger import finishing
from odradek.spark.ledger.finishing import CHANNEL, LostBatchError
from odradek.spark.ledger.ledger import (
    HISTORY_TOPIC,
    LEDGER_TOPIC,
    Decision,
    Finish,
    LedgerEntry,
    LedgerError,
    Participant,
    Propose,
    Range,
    Stream,
    SupersededError,
    check_rows,
    check_run,
    coordinator_id,
    decide,
    encode_decision,
    encode_entry,
    entry_key,
    finished_jobs,
    judge,
    plan_sweep,
    stream_prefix,
    take_over,
)
from odradek.spark.ledger.ledger_log import LedgerLog, ensure_topics
from odradek.spark.ledger.predecessors import describe_predecessors
from odradek.spark.sink.outbox import DELIVERY_TIMEOUT_S
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_log = logging.getLogger(__name__)

_DECISION_TIMEOUT_MS = 10_000
_ATTEMPTS = 10
_MOST_FORGOTTEN = 64
"""Of jobs, by each that ends: more than come up, and no long wait."""
_OVERTAKEN = (AbortableError, FatalError, OutcomeUnknownError)
"""A decision that did not get through: somebody else took charge, or nobody knows. The ledger tells."""
_MAY_BE_OPEN = ("Empty", "Ongoing")
"""States in which an id may hold a transaction open, or open one. After an end its holder's epoch is void."""
_PREPARED = "PrepareCommit"
"""A commit whose markers are on their way."""
_LONGEST_LOOK_S = 1.0
_LOOK_PAUSE_S = 0.002


class WrittenBatch(NamedTuple):
    """A batch that was written, to be decided."""

    number: int
    run: str
    job: str
    range: Range
    participants: tuple[Participant, ...]
    offsets: Mapping[TopicPartition, int]
    """Of the sources, for a consumer group, so that others see how far the query is."""
    skipped: int | None = None
    """Rows of it that were not written, since its tasks found it decided; None where nobody has counted."""

    @property
    def may_skip(self) -> bool:
        """A program that writes batches of a query itself does so when it wants to."""
        return bool(self.job)


class Decider:
    """Decides the batches of one stream, one after another, for one run."""

    def __init__(
        self,
        client: Client,
        stream: Stream,
        *,
        prefix: str = "odradek",
        group: str | None = None,
        adopts: bool = False,
        name: str = "",
        timeout_s: float = DELIVERY_TIMEOUT_S,
    ) -> None:
        self._client = client
        self._stream = stream
        self._prefix = prefix
        self._group = group
        self._adopts = adopts
        self._name = name
        self._timeout_s = timeout_s
        self._ledger = LedgerLog(client)
        self._producer: TransactionalProducer | None = None
        self._visible_ms: dict[int, int] = {}
        """Of the last batch, when it is finished."""

    async def close(self) -> None:
        await self._resign()
        self._ledger.close()

    async def commit(self, batch: WrittenBatch) -> Decision:
        """Returns when every participant is committed and nothing else of this stream is open."""
        entry = await self._ledger.entry(self._stream)
        reason: Exception | None = None
        for _ in range(_ATTEMPTS):
            found = judge(entry, batch.number, batch.run, batch.range, skips=self._adopts or batch.may_skip)
            if isinstance(found, Finish):
                break
            if self._producer is None:
                entry = await self._take_charge()
                continue
            try:
                entry = await self._decide(found, batch)
            except _OVERTAKEN as e:
                _log.warning("%s: deciding batch %d again: %s", self._stream, batch.number, e)
                reason = e
                await self._resign()
                entry = await self._take_charge()
        else:
            raise LedgerError(f"batch {batch.number} of {self._stream} was not decided: {reason}") from reason
        assert entry is not None
        self._check_same(found.decision, batch)
        await self.finish(found.decision, batch.run)
        check_run(entry, batch.run)
        if batch.job:
            entry = await self._note_job(entry, batch)
        await self._sweep(entry, batch.run, batch.job, found.decision)
        return found.decision

    def _check_same(self, decision: Decision, batch: WrittenBatch) -> None:
        """Where offsets do not tell whether a batch is the one that was decided, its size may."""
        is_own = [p[:3] for p in decision.participants] == [p[:3] for p in batch.participants]
        if is_own or (decision.range.is_known and batch.range.is_known):
            return
        if batch.skipped is not None and not self._adopts:
            check_rows(decision, batch.skipped + sum(p.rows for p in batch.participants))
        _log.warning(
            "%s: batch %d was committed by the run %s, and is not written again. Only its number and row "
            "count were compared: no checkpoint says which offsets it has",
            self._stream,
            batch.number,
            decision.run,
        )

    async def abandon(self, run: str) -> None:
        """A batch will not be committed by this run: end what it has left open."""
        entry = await self._ledger.entry(self._stream)
        await self._sweep(entry, run, "", None, claims=False)

    async def _note_job(self, entry: LedgerEntry, batch: WrittenBatch) -> LedgerEntry:
        """A program may write several times in one batch of a query. Each write has to be a stream of its
        own: the second one would be taken for the first one run again."""
        decision = entry.decision
        if decision.job == batch.job:
            return entry
        if decision.run == batch.run:
            raise LedgerError(
                f"batch {batch.number} of the query is written twice to the sink {self._stream.sink!r}: "
                "give each write in foreachBatch its own sinkId. The second write wrote nothing"
            )
        return await self._claim(entry, batch.run, batch.job, ())

    # --- the decision ---------------------------------------------------------------------------------

    async def _take_charge(self) -> LedgerEntry | None:
        """Fence earlier deciders, and read all decisions until then."""
        await self._resign()
        self._producer = TransactionalProducer(
            self._client,
            coordinator_id(self._prefix, self._stream),
            transaction_timeout_ms=_DECISION_TIMEOUT_MS,
            max_block_ms=self._client.api_timeout_ms,
            compression="zstd",  # the names of transactions are nearly the same
        )
        await self._producer.init_transactions()
        return await self._ledger.entry(self._stream)

    async def _resign(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            await producer.close()

    async def _decide(self, found: Propose, batch: WrittenBatch) -> LedgerEntry:
        """The commit point."""
        await self._check_open(batch.participants)
        decided_ms = self._client.runtime.clock.now_ms()
        decision = Decision(
            batch.number,
            batch.run,
            batch.job,
            batch.range,
            batch.participants,
            decided_ms,
            self._visible_ms.get(batch.number - 1),
        )
        known = found.known
        others: Sequence[str] = ()
        if known is None or known.run != batch.run:
            # The first decision of a run also ends the runs before it, those that never decided, too.
            listed = await self.open_participants()
            others = plan_sweep(known, self._prefix, self._stream, batch.run, listed).unknown_runs
        entry = await self._write(decide(known, decision, others)._replace(name=self._name), batch.offsets)
        for told in describe_predecessors(self._ledger.view, self._stream, known, entry):
            _log.warning("%s", told)
        return entry

    async def _write(self, entry: LedgerEntry, offsets: Mapping[TopicPartition, int]) -> LedgerEntry:
        assert self._producer is not None
        producer = self._producer
        producer.begin()
        key = entry_key(self._stream)
        await producer.send(LEDGER_TOPIC, encode_entry(entry), key=key, partition=0)
        await producer.send(
            HISTORY_TOPIC, encode_decision(self._stream, entry.decision), key=key, partition=0
        )
        await self._publish(producer, offsets)
        await producer.commit()
        return entry

    async def _publish(self, producer: TransactionalProducer, offsets: Mapping[TopicPartition, int]) -> None:
        """How far the query is, for who looks at its group; a topic that was deleted does not hold it up."""
        if self._group is None or not offsets:
            return
        names = {tp.topic for tp in offsets}
        cluster = await self._client.retrying(lambda: self._client.refresh(sorted(names)))
        there = {tp: offset for tp, offset in offsets.items() if tp.topic in cluster.topics}
        await producer.send_offsets(there, self._group)

    async def _claim(self, entry: LedgerEntry, run: str, job: str, others: Sequence[str]) -> LedgerEntry:
        """Say that this run decides from now on, and that others do not."""
        reason: Exception | None = None
        for _ in range(_ATTEMPTS):
            if self._producer is None:
                taken = await self._take_charge()
                check_run(taken, run)
                assert taken is not None
                if taken.decision.batch != entry.decision.batch:
                    # It has decided over transactions that were open when this run looked.
                    raise SupersededError(
                        f"another run ({taken.run}) of this query has decided batch {taken.decision.batch} "
                        f"while this one was at {entry.decision.batch}: two drivers use one checkpoint"
                    )
                entry = taken
            try:
                return await self._write(take_over(entry, run, job, others), {})
            except _OVERTAKEN as e:
                await self._resign()
                reason = e
        raise LedgerError(f"{self._stream} could not be taken over: {reason}") from reason

    async def _check_open(self, participants: Sequence[Participant]) -> None:
        """After fencing and reading: the ledger already has the decision of every transaction that was
        ended."""
        described = await self._describe([p.transactional_id for p in participants])
        for participant in participants:
            state = described[participant.transactional_id]
            is_same = (state.producer_id, state.producer_epoch) == participant[1:3]
            if state.transaction_state != "Ongoing" or not is_same:
                raise LedgerError(
                    f"{participant.transactional_id} is {state.transaction_state} and was to be committed: "
                    "another driver or person has ended it. Nothing was written; the batch is run again"
                )

    async def _describe(self, ids: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        types = request_types(ApiKey.DESCRIBE_TRANSACTIONS)

        async def attempt() -> None:
            by_node: dict[int, list[str]] = {}
            for transactional_id in ids:
                if transactional_id not in found:
                    node_id = await self._client.coordinator(transactional_id, 1)
                    by_node.setdefault(node_id, []).append(transactional_id)
            for node_id, asked in by_node.items():
                request = types.DescribeTransactionsRequest(transactional_ids=asked)
                try:
                    response = await self._client.send(ApiKey.DESCRIBE_TRANSACTIONS, request, node_id=node_id)
                except (OSError, KafkaError):
                    for transactional_id in asked:  # another broker coordinates them when this one is gone
                        self._client.forget_coordinator(transactional_id, 1)
                    raise
                for state in response.transaction_states:
                    if state.error_code == ErrorCode.NOT_COORDINATOR:
                        self._client.forget_coordinator(state.transactional_id, 1)
                    check(state.error_code, place=f"transactional id {state.transactional_id}")
                    found[state.transactional_id] = state

        await self._client.retrying(attempt)
        return found

    # --- after the decision ---------------------------------------------------------------------------

    async def finish(self, decision: Decision, run: str) -> None:
        """Commit the participants of a decision."""
        await finishing.finish(self._client, decision, run, self._timeout_s)

    async def forget_jobs(self) -> None:
        """Take plain writes that are long over out of the ledger: every new process reads it whole. What a
        driver that died had decided and not committed is committed first."""
        now_ms = self._client.runtime.clock.now_ms()
        jobs = dict(islice(finished_jobs(await self._ledger.read(), now_ms).items(), _MOST_FORGOTTEN))
        producer = self._producer
        if not jobs or producer is None:
            return
        for stream, decision in jobs.items():
            try:
                await self.finish(decision, decision.run)
            except LostBatchError as e:
                _log.warning("%s is removed from the ledger: %s", stream, e)
        producer.begin()
        for stream in jobs:
            await producer.send(LEDGER_TOPIC, None, key=entry_key(stream), partition=0)
        await producer.commit()

    # --- the sweep ------------------------------------------------------------------------------------

    async def _sweep(
        self, entry: LedgerEntry | None, run: str, job: str, finished: Decision | None, *, claims: bool = True
    ) -> None:
        """End everything of this stream that is undecided: a transaction of two phases never expires."""
        plan = plan_sweep(entry, self._prefix, self._stream, run, await self.open_participants(finished))
        doomed = plan.doomed
        if plan.unknown_runs and claims:
            doomed = [*doomed, *plan.unclaimed]
            assert entry is not None
            await self._claim(entry, run, job, plan.unknown_runs)
        await asyncio.gather(*(self._fence(transactional_id) for transactional_id in doomed))

    async def _fence(self, transactional_id: str) -> None:
        """Fence the producer of a transactional id. It is left in a state that shows this, so that a later
        sweep skips it."""
        requests = TransactionRequests(self._client, transactional_id, channel=CHANNEL)
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        try:
            given = await requests.init(
                NOBODY, _DECISION_TIMEOUT_MS, deadline, enable_2pc=False, keep_prepared=False
            )
            identity = ProducerIdAndEpoch(given.producer_id, given.producer_epoch)
            await requests.end(identity, False, deadline, version_1=False)
        except RefusedError as e:
            if e.code not in FENCED:
                raise
            # Another sweep is at the same id.

    async def open_participants(self, finished: Decision | None = None) -> list[str]:
        """The participants of this stream that are open, or could open a transaction. Those of a decision
        that is finished may have markers on their way still: they are waited for, a moment, since the next
        batch needs the ids, and how long that took is noted for the next decision to tell."""
        give_up = asyncio.get_running_loop().time() + _LONGEST_LOOK_S
        ours = {p.transactional_id for p in finished.participants} if finished is not None else set()
        prefix = stream_prefix(self._prefix, self._stream)
        while True:
            found = await Admin(self._client).list_transactions((*_MAY_BE_OPEN, _PREPARED), prefix)
            states = [state for listed in found.values() for state in listed]
            is_visible = not any(
                s.transactional_id in ours for s in states if s.transaction_state == _PREPARED
            )
            if is_visible or asyncio.get_running_loop().time() >= give_up:
                break
            await asyncio.sleep(_LOOK_PAUSE_S)
        if finished is not None:
            self._note_visible(finished, is_visible)
        return [s.transactional_id for s in states if s.transaction_state != _PREPARED]

    def _note_visible(self, finished: Decision, is_visible: bool) -> None:
        self._visible_ms.clear()
        if is_visible:
            self._visible_ms[finished.batch] = self._client.runtime.clock.now_ms() - finished.decided_ms
        else:
            _log.warning(
                "%s: readers do not see all of batch %d yet: its markers are still missing after %.0f s",
                self._stream,
                finished.batch,
                _LONGEST_LOOK_S,
            )


async def abandon(client: Client, stream: Stream, prefix: str, run: str) -> None:
    """A run gives up: end what it has left open and not decided."""
    await ensure_topics(client)
    decider = Decider(client, stream, prefix=prefix)
    try:
        await decider.abandon(run)
    finally:
        await decider.close()
