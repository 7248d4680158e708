"""A task attempt's part of a batch: a transaction of two phases, written and left open for the driver.

Its transactional id is a slot of the worker process, which nobody else ever initialises. A slot is used again
only in a later batch of the same run: then the driver has ended what the slot was used for before.
"""

import asyncio
from itertools import count
from uuid import uuid4

from odradek.client.batches import NOBODY
from odradek.client.client import Client
from odradek.client.transaction_errors import FENCED
from odradek.client.transaction_requests import RefusedError, TransactionRequests
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_TIMEOUT_MS, ProducerIdAndEpoch
from odradek.spark.ledger.finishing import CHANNEL, finish_early
from odradek.spark.ledger.ledger import Participant, Stream, check_run, participant_id
from odradek.spark.ledger.ledger_log import LedgerLog
from odradek.spark.sink.outbox import DELIVERY_TIMEOUT_S, Outbox
from odradek.spark.sink.tasks import Task

_MOST_RUNS = 256
"""How many runs a process remembers slots for. Each plain write is a run."""
_REFUSED_2PC = frozenset(
    {
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    }
)


class Slots:
    """The ids of this process, by stream and run. No two have the same number: when it is forgotten whether
    the last transaction of an id is complete, the id is not used again."""

    def __init__(self, prefix: str, worker: str | None = None) -> None:
        self._prefix = prefix
        self._worker = worker or uuid4().hex[:12]
        self._used: dict[tuple[Stream, str], dict[int, int]] = {}
        """For every slot its last batch. The most recently used run is last."""
        self._numbers = count()
        self._finished: tuple[Stream, int] | None = None

    def finishes(self, task: Task) -> bool:
        """Whether this process still has to see to it that the batch, which is decided, is committed: not
        again for every task of it."""
        before, self._finished = self._finished, (task.stream, task.batch)
        return before != self._finished

    def take(self, task: Task) -> str:
        owner = (task.stream, task.run)
        used = self._used[owner] = self._used.pop(owner, {})
        if len(self._used) > _MOST_RUNS:
            del self._used[next(iter(self._used))]
        slot = next((slot for slot, batch in used.items() if batch < task.batch), None)
        if slot is None:
            slot = next(self._numbers)
        used[slot] = task.batch
        return participant_id(self._prefix, task.stream, task.run, self._worker, slot)


class Attempt:
    """Made by `begin`. None from it: the batch is decided and committed, and nothing is to be written."""

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        identity: ProducerIdAndEpoch,
        requests: TransactionRequests,
        codec: int,
        timeout_s: float,
    ) -> None:
        self._transactional_id = transactional_id
        self._identity = identity
        self._requests = requests
        self._timeout_s = timeout_s
        self.outbox = Outbox(client, identity, transactional_id, codec=codec, delivery_timeout_s=timeout_s)

    @classmethod
    async def begin(
        cls,
        client: Client,
        ledger: LedgerLog,
        slots: Slots,
        task: Task,
        codec: int,
        timeout_s: float = DELIVERY_TIMEOUT_S,
    ) -> "Attempt | None":
        """First the id, then a look at the ledger. The sweep of a decision fences every id that there is when
        the decision is made; who takes one later, sees the decision."""
        transactional_id = slots.take(task)
        requests = TransactionRequests(client, transactional_id, channel=CHANNEL)
        deadline = _deadline(timeout_s)
        try:
            given = await requests.init(NOBODY, NO_TIMEOUT_MS, deadline, enable_2pc=True, keep_prepared=False)
        except RefusedError as e:
            raise (_refusal_of_2pc(e) if e.code in _REFUSED_2PC else e) from e
        identity = ProducerIdAndEpoch(given.producer_id, given.producer_epoch)
        entry = await ledger.entry(task.stream)
        if entry is not None and entry.decision.batch >= task.batch:
            await _end_nothing(requests, identity, deadline)
            if entry.decision.batch == task.batch and slots.finishes(task):
                await finish_early(client, entry.decision, task.run, timeout_s)
            return None
        check_run(entry, task.run)
        return cls(client, transactional_id, identity, requests, codec, timeout_s)

    async def finish(self) -> Participant | None:
        """Everything is written and acknowledged, and the transaction stays open. None without records."""
        await self.outbox.flush()
        await self.outbox.close()
        if not self.outbox.rows:
            await _end_nothing(self._requests, self._identity, _deadline(self._timeout_s))
            return None
        partitions = tuple((tp.topic, tp.partition) for tp in self.outbox.partitions)
        return Participant(self._transactional_id, *self._identity, self.outbox.rows, partitions)

    async def abort(self) -> None:
        await self.outbox.close()
        await self._requests.end(self._identity, False, _deadline(self._timeout_s), version_1=False)


async def _end_nothing(requests: TransactionRequests, identity: ProducerIdAndEpoch, deadline: float) -> None:
    """Give an id up that nothing was written with. A sweep may have been faster."""
    try:
        await requests.end(identity, False, deadline, version_1=False)
    except RefusedError as e:
        if e.code not in FENCED:
            raise


def _deadline(timeout_s: float) -> float:
    return asyncio.get_running_loop().time() + timeout_s


def _refusal_of_2pc(error: KafkaError) -> KafkaError:
    """What a cluster says to a participant that it does not let hold a transaction open, with the way out."""
    return KafkaError(
        error.code,
        "this cluster does not serve two-phase commit, which exactly-once delivery needs. On Apache Kafka "
        "set transaction.two.phase.commit.enable=true and unstable.api.versions.enable=true on every broker, "
        "or write with the option delivery=at-least-once",
    )
