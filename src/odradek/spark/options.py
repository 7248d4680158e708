"""The options of a reader or writer, as texts from Spark, checked and turned into values. Pure.

Names are the official Kafka connector's, so that a job moves over by changing its format; Spark hands them
over in lower case. A name that is not known is an error, with the one that was probably meant.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from odradek.client.admin import EARLIEST, LATEST
from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from odradek.core.config.listeners import SUPPORTED_PROTOCOL, why_unsupported
from odradek.core.types import TopicPartition
from odradek.spark.kafka_settings import (
    CONSUMER,
    PRODUCER,
    REFUSED_CONSUMER,
    REFUSED_PRODUCER,
    as_options,
    why_refused,
)


class OptionError(ValueError):
    """An option that cannot be meant so."""


class Chosen(NamedTuple):
    """Which topics: partitions by name, topics by name, or topics whose names match."""

    assign: tuple[TopicPartition, ...] = ()
    subscribe: tuple[str, ...] = ()
    pattern: str | None = None
    with_internal: bool = False

    def includes(self, tp: TopicPartition, *, is_internal: bool = False) -> bool:
        """A pattern does not match internal topics. To read one, name it."""
        if self.pattern is None:
            return tp.topic in self.subscribe or tp in self.assign
        return (self.with_internal or not is_internal) and re.fullmatch(self.pattern, tp.topic) is not None

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern={self.pattern}"
        if self.subscribe:
            return f"subscribe={','.join(self.subscribe)}"
        return f"assign={','.join(map(str, self.assign))}"


@dataclass(frozen=True)
class OffsetBounds:
    """Where to begin, or to end: by time before by offset, for all partitions before for single ones."""

    default: int
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Connecting:
    """How a cluster is reached."""

    bootstrap: str
    client_id: str = "odradek-spark"
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000


@dataclass(frozen=True)
class SourceOptions:
    connecting: Connecting
    chosen: Chosen
    starting: OffsetBounds
    ending: OffsetBounds
    latest_if_no_time: bool
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    min_records_per_partition: int
    include_headers: bool
    isolation: int
    fetch_bytes: int
    poll_timeout_ms: int


@dataclass(frozen=True)
class SinkOptions:
    connecting: Connecting
    topic: str | None
    exactly_once: bool
    include_headers: bool
    codec: str
    batch_bytes: int
    prefix: str
    sink: str
    idempotency_key: str | None
    batch: int | None
    """The number of the batch in the stream that the key names."""
    checkpoint: str | None
    group: str | None
    adopts: bool
    name: str
    """The query's, if it was given one."""


@dataclass(frozen=True)
class SegmentOptions:
    """Of log directories that are read without a cluster."""

    paths: tuple[str, ...]
    topics: tuple[str, ...]
    pattern: str | None
    include_headers: bool
    isolation: int


def source_options(
    given: Mapping[str, str], *, streaming: bool, of_table: Mapping[str, str] | None = None
) -> SourceOptions:
    """`of_table` are those that a table of Spark's catalog was made with; what is given goes before them."""
    read = _Reader(_with_table(given, of_table, _SOURCE, _SINK), _SOURCE, REFUSED_CONSUMER)
    chosen = _chosen(read)
    isolation = read.one_of("isolation", ("read_committed", "read_uncommitted"), None)
    kafka_isolation = read.one_of("kafka.isolation.level", ("read_committed", "read_uncommitted"), None)
    if isolation and kafka_isolation and isolation != kafka_isolation:
        raise OptionError("isolation and kafka.isolation.level contradict each other")
    default = LATEST if streaming else EARLIEST
    ending = next((name for name in _ENDING if streaming and read.text(name.lower())), None)
    if ending is not None:
        raise OptionError(f"{ending} is for batches: a stream has no end (use trigger(availableNow=True))")
    if not streaming and read.text("startingoffsets") == "latest":
        raise OptionError("startingOffsets=latest reads nothing in a batch: give earliest or offsets")
    if read.text("endingoffsets") == "earliest":
        raise OptionError("endingOffsets=earliest reads nothing: give latest or offsets")
    is_split = any(read.text(name) for name in ("minpartitions", "maxrecordsperpartition"))
    return SourceOptions(
        connecting=_connecting(read),
        chosen=chosen,
        starting=_bounds(read, "starting", default),
        ending=_bounds(read, "ending", LATEST),
        latest_if_no_time=read.one_of("startingoffsetsbytimestampstrategy", ("error", "latest"), "error")
        == "latest",
        fail_on_data_loss=read.flag("failondataloss", True),
        max_offsets_per_trigger=read.number("maxoffsetspertrigger", 1),
        min_offsets_per_trigger=read.number("minoffsetspertrigger", 1),
        max_trigger_delay_ms=_duration_ms(read.text("maxtriggerdelay") or "15m"),
        min_partitions=read.number("minpartitions", 1),
        max_records_per_partition=read.number("maxrecordsperpartition", 1),
        min_records_per_partition=read.number("minrecordsperpartition", 1)
        or (1 if is_split else _WORTH_A_TASK),
        include_headers=read.flag("includeheaders", False),
        isolation=READ_UNCOMMITTED
        if (isolation or kafka_isolation) == "read_uncommitted"
        else READ_COMMITTED,
        fetch_bytes=read.number("kafka.max.partition.fetch.bytes", 1) or 4 << 20,
        poll_timeout_ms=read.number("kafkaconsumer.polltimeoutms", 1) or 120_000,
    )


def sink_options(given: Mapping[str, str], *, of_table: Mapping[str, str] | None = None) -> SinkOptions:
    read = _Reader(_with_table(given, of_table, _SINK, _SOURCE), _SINK, REFUSED_PRODUCER)
    delivery = read.one_of("delivery", ("exactly-once", "at-least-once"), "exactly-once")
    acks = read.text("kafka.acks")
    if acks not in (None, "all", "-1"):
        raise OptionError(f"kafka.acks={acks} may lose records: this sink always waits for all replicas")
    prefix, sink = read.text("prefix") or "odradek", read.text("sinkid") or "sink"
    for name, value in (("prefix", prefix), ("sinkId", sink)):
        if "." in value or not value.isprintable() or " " in value:
            raise OptionError(f"{name}={value!r}: no dots or spaces: it becomes part of transactional ids")
    key, batch = read.text("idempotencykey"), read.number("batchid", 0)
    if batch is not None and key is None:
        raise OptionError("batchId needs idempotencyKey, which names what it is a batch of")
    return SinkOptions(
        connecting=_connecting(read),
        topic=read.text("topic"),
        exactly_once=delivery == "exactly-once",
        include_headers=read.flag("includeheaders", True),
        codec=read.one_of("kafka.compression.type", ("none", "gzip", "snappy", "lz4", "zstd"), "none"),
        batch_bytes=read.number("kafka.batch.size", 1) or 900_000,
        prefix=prefix,
        sink=sink,
        idempotency_key=key,
        batch=batch,
        checkpoint=read.text("checkpointlocation"),
        group=read.text("offsets.group"),
        adopts=read.flag("adoptcheckpoint", False),
        name=read.text("queryname") or "",
    )


def check_table(given: Mapping[str, str]) -> None:
    """When a table is made: what cannot be meant so is told now, not when it is first used."""
    names = {name.lower() for name in given}
    _Reader(given, (*_SOURCE, *_SINK), {})
    is_read = bool(names.intersection(("assign", "subscribe", "subscribepattern")))
    if is_read:
        source_options({}, streaming=False, of_table=given)
    if "topic" in names or not is_read:
        sink_options({}, of_table=given)


def _with_table(
    given: Mapping[str, str],
    of_table: Mapping[str, str] | None,
    known: tuple[str, ...],
    beside: tuple[str, ...],
) -> Mapping[str, str]:
    """A table may be read and written: what is known only of the other side is left out."""
    if of_table is None:
        if not given:
            raise OptionError(_NO_OPTIONS)
        return given
    ours, theirs = {name.lower() for name in known}, {name.lower() for name in beside}
    kept = {name.lower(): value for name, value in of_table.items()}
    kept = {name: value for name, value in kept.items() if name in ours or name not in theirs}
    return {**kept, **{name.lower(): value for name, value in given.items()}}


_NO_OPTIONS = (
    "there are no options, not even kafka.bootstrap.servers. Spark does not pass the OPTIONS of a table to a "
    "Python source if the table has columns of its own, or was made AS SELECT. Make it without columns "
    "(CREATE TABLE t USING odradek OPTIONS (...)), or give the options with the statement (WITH (...))"
)


def segment_options(given: Mapping[str, str]) -> SegmentOptions:
    read = _Reader(given, _SEGMENTS, {})
    paths = tuple(_local(path) for path in (*_listed(read.text("path")), *(read.json("paths", list) or ())))
    if not paths:
        raise OptionError("path is missing: it names the log directories")
    topics, pattern = _listed(read.text("topics")), read.text("topicspattern")
    if topics and pattern:
        raise OptionError("give topics or topicsPattern, not both")
    isolation = read.one_of("isolation", ("read_committed", "read_uncommitted"), "read_committed")
    return SegmentOptions(
        paths=tuple(dict.fromkeys(paths)),
        topics=topics,
        pattern=_pattern("topicsPattern", pattern),
        include_headers=read.flag("includeheaders", False),
        isolation=READ_COMMITTED if isolation == "read_committed" else READ_UNCOMMITTED,
    )


def _listed(text: str | None) -> tuple[str, ...]:
    """What stands between commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def _local(path: str) -> str:
    scheme, found, rest = path.partition(":")
    if not found or "/" in scheme:
        return path
    if scheme != "file":
        raise OptionError(f"{path}: log directories are read from file systems that every worker has mounted")
    return "/" + rest.lstrip("/")


def _pattern(name: str, text: str | None) -> str | None:
    try:
        return text if text is None or re.compile(text) else None
    except re.error as e:
        raise OptionError(f"{name}={text}: {e}") from None


_WORTH_A_TASK = 5_000
"""Offsets that Spark passes through in about the time that it takes to start and end a task in Python."""
_SEGMENTS = ("path", "paths", "topics", "topicsPattern", "includeHeaders", "isolation")
_CONNECTION = (
    "kafka.bootstrap.servers",
    "kafka.client.id",
    "kafka.request.timeout.ms",
    "kafka.default.api.timeout.ms",
    "kafka.delivery.timeout.ms",
    "kafka.security.protocol",
)
_ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_SOURCE = (
    *_CONNECTION,
    *_ENDING,
    "assign",
    "subscribe",
    "subscribePattern",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingOffsets",
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "minRecordsPerPartition",
    "groupIdPrefix",
    "includeHeaders",
    "isolation",
    *as_options(CONSUMER),
)
_SINK = (
    *_CONNECTION,
    "topic",
    "includeHeaders",
    "delivery",
    "sinkId",
    "prefix",
    "idempotencyKey",
    "batchId",
    "offsets.group",
    "adoptCheckpoint",
    "checkpointLocation",
    "queryName",
    "path",
    *as_options(PRODUCER),
)


class _Reader:
    """The options by their names in lower case."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...], refused: dict[str, str]) -> None:
        names = {name.lower(): name for name in known}
        self._names = names
        self._given = {name.lower(): value for name, value in given.items()}
        for name in self._given:
            why = why_refused(name, refused)
            if why is not None:
                raise OptionError(f"{name} cannot be set: {why}")
            if name not in names:
                close = get_close_matches(name, names, 1)
                hint = f": did you mean {names[close[0]]}?" if close else ""
                raise OptionError(f"unknown option {name}{hint}")

    def text(self, name: str) -> str | None:
        return self._given.get(name)

    def flag(self, name: str, default: bool) -> bool:
        value = self._given.get(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise OptionError(f"{self._names[name]}={value}: true or false")
        return value.lower() == "true"

    def number(self, name: str, least: int) -> int | None:
        value = self._given.get(name)
        if value is None:
            return None
        if not value.isdigit() or int(value) < least:
            raise OptionError(f"{self._names[name]}={value}: a whole number of at least {least}")
        return int(value)

    def one_of(self, name: str, values: tuple[str, ...], default: Any) -> Any:
        value = self._given.get(name)
        if value is None:
            return default
        if value.lower() not in values:
            raise OptionError(f"{self._names[name]}={value}: one of {', '.join(values)}")
        return value.lower()

    def json(self, name: str, parse: Callable[[Any], Any]) -> Any:
        value = self._given.get(name)
        if value is None:
            return None
        try:
            return parse(json.loads(value))
        except (ValueError, TypeError, AttributeError, KeyError):
            example = '{"orders": {"0": 23, "1": -2}}' if "assign" not in name else '{"orders": [0, 1]}'
            raise OptionError(f"{self._names[name]}={value}: JSON such as {example}") from None


def _connecting(read: _Reader) -> Connecting:
    bootstrap = read.text("kafka.bootstrap.servers")
    if not bootstrap:
        raise OptionError("kafka.bootstrap.servers is missing")
    problem = why_unsupported(read.text("kafka.security.protocol") or SUPPORTED_PROTOCOL)
    if problem is not None:
        raise OptionError(f"kafka.security.protocol: {problem}")
    return Connecting(
        bootstrap,
        read.text("kafka.client.id") or Connecting.client_id,
        read.number("kafka.request.timeout.ms", 1) or Connecting.request_timeout_ms,
        read.number("kafka.default.api.timeout.ms", 1) or Connecting.api_timeout_ms,
        read.number("kafka.delivery.timeout.ms", 1) or Connecting.delivery_timeout_ms,
        read.number("kafka.retry.backoff.ms", 1) or Connecting.retry_backoff_ms,
        read.number("kafka.retry.backoff.max.ms", 1) or Connecting.retry_backoff_max_ms,
    )


def _chosen(read: _Reader) -> Chosen:
    names = [name for name in ("assign", "subscribe", "subscribepattern") if read.text(name)]
    if len(names) != 1:
        raise OptionError("no topics to read: give one of assign, subscribe and subscribePattern")
    if names[0] == "assign":
        return Chosen(assign=read.json("assign", _assigned))
    if names[0] == "subscribe":
        return Chosen(subscribe=_listed(read.text("subscribe")))
    return Chosen(
        pattern=_pattern("subscribePattern", read.text("subscribepattern")),
        with_internal=not read.flag("kafka.exclude.internal.topics", True),
    )


def _assigned(value: Any) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, int(p)) for topic, partitions in value.items() for p in partitions)


def partition_map(value: Any) -> dict[TopicPartition, int]:
    """{"orders": {"0": 23}} as Spark and its users write offsets."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in value.items()
        for partition, offset in partitions.items()
    }


def _bounds(read: _Reader, side: str, default: int) -> OffsetBounds:
    timestamp = read.number(f"{side}timestamp", 0)
    if timestamp is not None:
        return OffsetBounds(default, timestamp=timestamp)
    timestamps = read.json(f"{side}offsetsbytimestamp", partition_map)
    if timestamps is not None:
        return OffsetBounds(default, timestamps=timestamps)
    text = read.text(f"{side}offsets")
    if text in (None, "earliest", "latest"):
        return OffsetBounds({"earliest": EARLIEST, "latest": LATEST}.get(text or "", default))
    return OffsetBounds(default, offsets=read.json(f"{side}offsets", partition_map))


_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _duration_ms(text: str) -> int:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(digits) :].strip() or "ms"
    if not digits.isdigit() or unit not in _UNITS:
        raise OptionError(f"maxTriggerDelay={text}: such as 15m, 30s or 500ms")
    return int(digits) * _UNITS[unit]
