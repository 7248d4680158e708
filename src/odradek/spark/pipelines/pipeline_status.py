"""How far a pipeline is, seen from outside: from its checkpoint, the ledger and its consumer group."""

from typing import NamedTuple

from odradek.client.admin import LATEST
from odradek.client.blocking import BlockingClient
from odradek.client.fetching import READ_COMMITTED
from odradek.spark.ledger.deciding import Decider
from odradek.spark.ledger.ledger import LedgerEntry, Stream
from odradek.spark.ledger.ledger_log import LedgerLog, is_there
from odradek.spark.options import sink_options
from odradek.spark.pipelines.pipeline_spec import PipelineSpec
from odradek.spark.source.checkpoint import query_id


class Status(NamedTuple):
    """None: not known, since nothing has been decided yet."""

    sink: str
    topic: str | None
    query: str | None
    batch: int | None
    decided_ms: int | None
    rows: int | None
    participants: int | None
    open: int | None
    """Transactions that are open, or may be opened: of the batch at hand, or left behind."""
    lag: int | None
    visible_ms: int | None
    """From the decision of the batch before the last one until all of it could be read."""


def read_status(client: BlockingClient, spec: PipelineSpec) -> list[Status]:
    return [_status(client, spec, sink) for sink in spec.sinks]


def _status(client: BlockingClient, spec: PipelineSpec, sink: str) -> Status:
    options = sink_options({**spec.cluster, **spec.sinks[sink].options})
    query = query_id(spec.checkpoint_of(sink))
    lag = _lag(client, options.group or spec.group_of(sink))
    if query is None:
        return Status(sink, options.topic, None, None, None, None, None, None, lag, None)
    stream = Stream(query, options.sink)

    async def look() -> tuple[LedgerEntry | None, int]:
        ledger = LedgerLog(client.client)
        decider = Decider(client.client, stream, prefix=options.prefix)
        try:
            entry = await ledger.entry(stream) if await is_there(client.client) else None
            return entry, len(await decider.open_participants())
        finally:
            ledger.close()
            await decider.close()

    entry, open_participants = client.run(look())
    if entry is None:
        return Status(sink, options.topic, query, None, None, None, None, open_participants, lag, None)
    last = entry.decision
    rows = sum(participant.rows for participant in last.participants)
    return Status(
        sink,
        options.topic,
        query,
        last.batch,
        last.decided_ms,
        rows,
        len(last.participants),
        open_participants,
        lag,
        last.visible_ms,
    )


def _lag(client: BlockingClient, group: str) -> int | None:
    committed = client.call(client.admin.committed, group)
    if not committed:
        return None
    ends = client.call(
        client.admin.list_offsets, dict.fromkeys(committed, LATEST), isolation_level=READ_COMMITTED
    )
    return sum(max(int(ends[tp].offset) - int(found.committed_offset), 0) for tp, found in committed.items())
