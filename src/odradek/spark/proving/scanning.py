"""What a proof reads from the cluster: the history of decisions, and the transactions in a partition."""

from collections.abc import Iterator

from odradek.client.admin import EARLIEST, LATEST
from odradek.client.blocking import BlockingClient
from odradek.client.fetching import READ_COMMITTED, PartitionFetcher
from odradek.client.visibility import visible_batches
from odradek.core.types import Buffer, ProducerIdAndEpoch, TopicPartition
from odradek.records.batch import BatchMeta, iter_records
from odradek.spark.ledger.ledger import HISTORY_TOPIC, Decision, Stream, decode_decision, stream_prefix
from odradek.spark.ledger.ledger_log import HISTORY
from odradek.spark.options import Connecting
from odradek.spark.process import client_of
from odradek.spark.proving.transactions import NO_TRANSACTION, Written
from odradek.spark.source.planning import OffsetRange, Offsets

_OPEN = ("Ongoing", "PrepareCommit")


def read_history(client: BlockingClient) -> list[tuple[Stream, Decision]]:
    """Every decision that is kept, in the order in which they were made. Empty where there was never one."""
    cluster = client.call(client.client.retrying, lambda: client.client.refresh([HISTORY_TOPIC]))
    if HISTORY_TOPIC not in cluster.topics:
        return []
    (wanted,) = bounds_of(client, [HISTORY])
    return [
        decode_decision(bytes(record.value))
        for data, batch in _committed(client, wanted)
        for record in iter_records(data, batch)
        if record.value is not None and record.offset >= wanted.start
    ]


def has_all_history(client: BlockingClient) -> bool:
    """Whether retention has not taken any decision yet."""
    (kept,) = bounds_of(client, [HISTORY])
    return kept.start == 0


def bounds_of(client: BlockingClient, partitions: list[TopicPartition]) -> list[OffsetRange]:
    """From the first record to the last that is committed."""
    if not partitions:
        return []
    starts = client.call(client.admin.list_offsets, dict.fromkeys(partitions, EARLIEST))
    ends = client.call(
        client.admin.list_offsets, dict.fromkeys(partitions, LATEST), isolation_level=READ_COMMITTED
    )
    return [OffsetRange(tp, int(starts[tp].offset), int(ends[tp].offset)) for tp in partitions]


def ends_of(client: BlockingClient, partitions: list[TopicPartition]) -> Offsets:
    """Open transactions included, which a query at read_uncommitted reads."""
    if not partitions:
        return {}
    found = client.call(client.admin.list_offsets, dict.fromkeys(partitions, LATEST))
    return {tp: int(answer.offset) for tp, answer in found.items()}


def topic_id_of(client: BlockingClient, topic: str) -> str | None:
    """As checkpoints have it."""
    cluster = client.call(client.client.retrying, lambda: client.client.refresh([topic]))
    found = cluster.topic_id(topic)
    return str(found) if found.int else None


def partitions_of(client: BlockingClient, topic: str) -> list[TopicPartition]:
    async def ask() -> list[int]:
        return await client.client.retrying(lambda: client.client.partitions(topic))

    return [TopicPartition(topic, partition) for partition in client.run(ask())]


def count_transactions(connecting: Connecting, wanted: OffsetRange, log_start: int) -> list[Written]:
    """In a task: how many records each transaction has between two offsets."""
    found: dict[ProducerIdAndEpoch, Written] = {}
    for data, batch in _committed(client_of(connecting), wanted):
        is_ours = batch.base_offset >= wanted.start or wanted.start == log_start
        if not is_ours or batch.base_offset >= wanted.end or batch.last_offset < wanted.start:
            continue  # of a batch between two ranges, the one has it where it begins
        records = batch.record_count
        first = batch.base_offset
        if first < log_start:
            left = [record.offset for record in iter_records(data, batch) if record.offset >= log_start]
            records, first = len(left), log_start
        producer = NO_TRANSACTION
        if batch.is_transactional:
            producer = ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
        known = found.get(producer)
        count, start = (known.records, known.first_offset) if known is not None else (0, first)
        found[producer] = Written(wanted.tp, producer, count + records, start, batch.last_offset)
    return list(found.values())


def _committed(client: BlockingClient, wanted: OffsetRange) -> Iterator[tuple[Buffer, BatchMeta]]:
    """The committed batches of a range, and perhaps some around it."""

    async def make() -> PartitionFetcher:
        return PartitionFetcher(client.client, wanted.tp, isolation_level=READ_COMMITTED)

    async def close() -> None:
        fetcher.close()

    fetcher = client.run(make())
    position = wanted.start
    try:
        while position < wanted.end:
            fetched = client.run(fetcher.fetch(position))
            before = position
            for batch, is_shown in visible_batches(fetched.records, fetched.aborted):
                position = max(position, batch.last_offset + 1)
                if is_shown:
                    yield fetched.records, batch
            if position == before:
                return
    finally:
        client.run(close())


class Ids(dict[str, tuple[int, bool]]):
    """Transactional ids of a stream: their producer id now, and whether a transaction is open."""

    @property
    def producer_ids(self) -> dict[int, str]:
        return {producer_id: name for name, (producer_id, _) in self.items()}

    @property
    def unfinished(self) -> set[str]:
        return {name for name, (_, is_open) in self.items() if is_open}


def ids_of(client: BlockingClient, stream: Stream, decisions: list[Decision]) -> Ids:
    """All transactional ids that look like participants of the stream."""
    tail = stream_prefix("", stream)
    prefixes = {
        name.partition(tail)[0] + tail
        for decision in decisions
        for name, *_ in decision.participants
        if tail in name
    }
    found = Ids()
    for prefix in sorted(prefixes):
        found.update(list_ids(client, prefix))
    return found


def list_ids(client: BlockingClient, prefix: str | None = None) -> Ids:
    """Those that the cluster knows, whoever uses them."""
    found = Ids()
    for states in client.call(client.admin.list_transactions, (), prefix).values():
        for state in states:
            is_open = state.transaction_state in _OPEN
            found[state.transactional_id] = (state.producer_id, is_open)
    return found
