"""`odradek produce`: records from stdin into a topic. record_input.py reads them."""

from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from odradek.cli.declaring import Noun, option
from odradek.cli.errors import Failure, Usage, usage
from odradek.cli.options import Format, Topic, command
from odradek.cli.properties import parse_pairs
from odradek.cli.records.record_input import (
    InputRecord,
    UnreadableError,
    check_input_format,
    read_records,
    record_reader,
)
from odradek.cli.session import Session

if TYPE_CHECKING:
    from asyncio import Future

    from odradek.client.producer import Delivery, Producer

T = TypeVar("T")

_FORMAT = Format("text (one record per line), jsonl, or a template such as '%k\\t%v\\n'.", check_input_format)
_CHUNK_BYTES = 1 << 16
_LINGER_MS = 5
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


root = Noun()


@command(root, "produce", output_format=_FORMAT)
def produce(
    session: Session,
    topic: Topic,
    key: Annotated[
        str | None,
        option("-k", "--key", metavar="KEY", help="Key of records that have none.", show_default=False),
    ] = None,
    headers: Annotated[
        list[str] | None,
        option("-H", "--header", metavar="KEY=VALUE", help="A header for every record."),
    ] = None,
    partition: Annotated[
        int | None,
        option(
            "-p",
            "--partition",
            min=0,
            help="Partition. [default: by key; without keys, batches take turns]",
            show_default=False,
        ),
    ] = None,
    compression: Annotated[
        str | None,
        option(
            "-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4, zstd.", show_default=False
        ),
    ] = None,
    acks: Annotated[
        str | None,
        option(
            "--acks",
            metavar="0|1|all",
            help="Who must acknowledge a record: nobody, the leader, all in sync.",
            show_default=False,
        ),
    ] = None,
    tombstone: Annotated[
        bool, option("--tombstone", help="Write empty values as null (tombstones).")
    ] = False,
) -> None:
    """Write records from stdin to a topic.

    One record per line. -f also takes JSON lines, or a template such as '%k\\t%v\\n'.
    """
    codec = compression or session.properties["compression.type"]
    if codec not in _CODECS:
        raise Usage(f"-z {codec}: one of {', '.join(_CODECS)}")
    level = acks or session.properties["acks"]
    if level not in _ACKS:
        raise Usage(f"--acks {level}: one of 0, 1, all")
    with usage():
        end, read = record_reader(session.format)
        fixed_headers = tuple(
            (name, value.encode()) for name, value in parse_pairs("-H", headers or ()).items()
        )
    if session.terminal.can_ask:
        session.terminal.note("one record per line; end with Ctrl-D")
    defaults = InputRecord(None if key is None else key.encode(), None, fixed_headers, topic, partition)
    sender = _Sender(session, defaults, tombstone, _ACKS[level], codec)
    unreadable: UnreadableError | None = None
    try:
        with session.progress(f"writing to {topic}", "records") as progress:
            for records in read_records(_arriving(session), end, read):
                sender.send(records)
                progress.advance(len(records))
    except UnreadableError as e:
        unreadable = e
    finally:
        sender.close()
    count = sender.delivered
    counted = f"{count} record{'s' * (count != 1)}"
    if unreadable is not None:
        raise Failure(f"{unreadable}; {counted} written")
    session.terminal.note(f"{counted} to {topic}")


def _arriving(session: Session) -> Iterator[bytes]:
    """stdin, as soon as something is there."""
    while chunk := session.terminal.bytes_in.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
        yield chunk


class _Sender:
    """Sends records on the client's loop and counts those that arrived. The first failure ends it."""

    def __init__(
        self, session: Session, defaults: InputRecord, tombstone: bool, acks: int, compression: str
    ) -> None:
        self.delivered = 0
        self._cluster = session.cluster
        self._defaults = defaults
        self._tombstone = tombstone
        self._failure: BaseException | None = None
        self._producer = self._run(self._make(acks, compression))

    async def _make(self, acks: int, compression: str) -> "Producer":
        from odradek.client.producer import Producer

        return Producer(
            self._cluster.client.client,
            acks=acks,
            compression=compression,
            linger_ms=_LINGER_MS,
            delivery_timeout_ms=self._cluster.timeout_ms,
        )

    def send(self, records: list[InputRecord]) -> None:
        self._run(self._send(records))
        self._raise_failure()

    def close(self) -> None:
        self._run(self._producer.close())
        self._raise_failure()

    async def _send(self, records: list[InputRecord]) -> None:
        defaults = self._defaults
        for record in records:
            delivery = await self._producer.send(
                record.topic or defaults.topic or "",
                None if self._tombstone and not record.value else record.value,
                key=defaults.key if record.key is None else record.key,
                partition=defaults.partition if record.partition is None else record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=(*record.headers, *defaults.headers),
            )
            delivery.add_done_callback(self._on_delivery)

    def _on_delivery(self, delivery: "Future[Delivery]") -> None:
        error = delivery.exception()
        if error is None:
            self.delivered += 1
        elif self._failure is None:
            self._failure = error

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._cluster.failing(f"topic {self._defaults.topic}", self._defaults.topic or ""):
            return self._cluster.client.run(work)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            with self._cluster.failing(f"topic {self._defaults.topic}", self._defaults.topic or ""):
                raise failure
