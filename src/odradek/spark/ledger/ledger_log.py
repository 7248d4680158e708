"""The ledger as a topic: made when it is missing, read to its end."""

import asyncio
from functools import partial
from uuid import UUID

from odradek.client.admin import LATEST, Admin
from odradek.client.client import Client
from odradek.client.fetching import READ_UNCOMMITTED, Fetched, PartitionFetcher
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer, TopicPartition
from odradek.records.batch import iter_batches, iter_records
from odradek.records.control import ControlType, parse_control_key
from odradek.spark.ledger.ledger import HISTORY_TOPIC, LEDGER_TOPIC, LedgerEntry, LedgerError, Stream, View

LEDGER = TopicPartition(LEDGER_TOPIC, 0)
HISTORY = TopicPartition(HISTORY_TOPIC, 0)

_LARGEST_DECISION = 32 << 20
"""It names every task's transaction, and the partitions of each."""
_SETTINGS = {
    # Read whole by every new process: kept short by compacting early and often.
    LEDGER_TOPIC: {
        "cleanup.policy": "compact",
        "segment.bytes": str(1 << 20),
        "segment.ms": str(3_600_000),
        "min.cleanable.dirty.ratio": "0.1",
        "delete.retention.ms": str(60_000),
        "max.message.bytes": str(_LARGEST_DECISION),
    },
    HISTORY_TOPIC: {
        "cleanup.policy": "delete",
        "retention.ms": str(7 * 86_400_000),
        "max.message.bytes": str(_LARGEST_DECISION),
    },
}
_PAUSE_S = 0.005


async def ensure_topics(client: Client) -> None:
    """Make the topics of the ledger where they are missing."""
    cluster = await client.retrying(lambda: client.refresh(_SETTINGS))
    for name, settings in _SETTINGS.items():
        if name in cluster.topics:
            continue
        try:
            await Admin(client).create_topics({name: 1}, configs=settings)
        except KafkaError as e:
            if e.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
    for tp in (LEDGER, HISTORY):
        await client.retrying(partial(client.leader, tp))


async def is_there(client: Client) -> bool:
    """Has anything ever been decided in this cluster?"""
    return LEDGER_TOPIC in (await client.retrying(partial(client.refresh, [LEDGER_TOPIC]))).topics


class LedgerLog:
    """What this process has read of the ledger; every look reads on from there."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._fetcher = PartitionFetcher(client, LEDGER, isolation_level=READ_UNCOMMITTED, max_wait_ms=0)
        self._topic_id: UUID | None = None
        self._confirmed_epoch = -1
        self.view = View()

    def close(self) -> None:
        self._fetcher.close()

    async def entry(self, stream: Stream, timeout_s: float = 60.0) -> LedgerEntry | None:
        """What is decided of a stream, of all that is in the ledger now. Waits for the end of a decision that
        is being written."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        end = await self._read_to(None)
        while self.view.is_pending(stream):
            if loop.time() >= deadline:
                raise LedgerError(f"writing a decision of {stream} has taken longer than {timeout_s:.0f} s")
            await asyncio.sleep(_PAUSE_S)
            await self._read_to(end)
        return self.view.entry(stream)

    async def read(self) -> View:
        """Everything that is committed now."""
        await self._read_to(None)
        return self.view

    async def _read_to(self, end: int | None) -> int:
        """Read to the end of now, or to an earlier one, but at least once."""
        deadline = asyncio.get_running_loop().time() + self._client.api_timeout_ms / 1000
        while True:
            fetched = await self._fetch()
            end = await self._end(fetched) if end is None else end
            self._take(fetched.records)
            if self.view.position >= end:
                return end
            if fetched.records:
                continue
            if fetched.high_watermark >= end:
                return end  # what was there was compacted away
            if asyncio.get_running_loop().time() >= deadline:
                raise LedgerError(
                    f"the ledger {LEDGER_TOPIC} ends at {fetched.high_watermark}, but ended at {end} before: "
                    "it was cut off"
                )
            await asyncio.sleep(_PAUSE_S)

    async def _end(self, fetched: Fetched) -> int:
        """The high watermark of now: every decision that was acknowledged lies below.

        The one in a fetch may be behind when a partition has a new leader, which learns from its followers
        how far they are. ListOffsets does not answer until that leader knows of all that was acknowledged
        under earlier ones (KIP-207). It takes as long as the fetch (140 us of 300), so it is asked once for
        each leader: its high watermark never goes back, and a fetch that names another leader epoch than its
        own is refused. Should the epoch change under our hands, the one remembered here is the older, and
        the next read asks again.
        """
        epoch = self._client.cluster.leader_epoch(LEDGER)
        if 0 <= epoch == self._confirmed_epoch:
            return fetched.high_watermark
        found = await Admin(self._client).list_offsets({LEDGER: LATEST})
        self._confirmed_epoch = epoch
        return max(int(found[LEDGER].offset), fetched.high_watermark)

    async def _fetch(self) -> Fetched:
        try:
            fetched = await self._fetcher.fetch(self.view.position)
        except KafkaError as e:
            if e.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                raise LedgerError(f"the ledger {LEDGER_TOPIC} was cut off: {e}") from e
            raise
        topic_id = self._client.cluster.topic_id(LEDGER_TOPIC)
        if self._topic_id not in (None, topic_id):
            raise LedgerError(f"the ledger {LEDGER_TOPIC} was deleted and recreated")
        self._topic_id = topic_id
        return fetched

    def _take(self, data: Buffer) -> None:
        view = self.view
        for batch in iter_batches(data):
            if batch.last_offset < view.position:
                continue
            records = list(iter_records(data, batch))
            if batch.is_control and records:
                kind = parse_control_key(records[0].key)
                if kind in (ControlType.COMMIT, ControlType.ABORT):
                    view.end(batch.producer_id, commit=kind is ControlType.COMMIT)
            elif batch.is_transactional:
                view.apply(batch.producer_id, [(record.key, record.value) for record in records])
            view.position = batch.last_offset + 1
