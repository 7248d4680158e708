"""Topics as DataFrames: the batch and the streaming reader."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from odradek.client.admin import EARLIEST, LATEST
from odradek.client.fetching import READ_UNCOMMITTED
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID, TopicPartition
from odradek.spark.ledger.ledger import HISTORY_TOPIC, LEDGER_TOPIC
from odradek.spark.options import OffsetBounds, OptionError, SourceOptions
from odradek.spark.process import client_of, freeze_what_is_loaded, reaching
from odradek.spark.quick import SentToTasks
from odradek.spark.source.planning import (
    OffsetRange,
    Offsets,
    from_json,
    is_same_place,
    limit_to,
    made_anew,
    pack,
    split,
    starts_of,
    to_json,
)
from odradek.spark.source.ranges import DataLossError, read_ranges
from odradek.spark.tables import Column
from odradek.spark.telling import cause_first

_log = logging.getLogger(__name__)


class TaskRanges(InputPartition):
    """What one task reads."""

    def __init__(self, wanted: tuple[OffsetRange, ...]) -> None:
        super().__init__(None)
        self.wanted = wanted


class Topics:
    """What a reader asks the cluster on the driver: which partitions there are, where they begin and end."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._client = client_of(options.connecting)

    @property
    def cluster_id(self) -> str | None:
        return self._client.client.cluster.cluster_id

    @property
    def ids(self) -> dict[str, str]:
        """The ids of the topics that were found last. A topic that is deleted and created again has a new
        one."""
        topics = self._client.client.cluster.topics
        return {name: str(topic.id) for name, topic in topics.items() if topic.id != ZERO_UUID}

    def partitions(self) -> list[TopicPartition]:
        """All that are chosen. KafkaError where there is no such topic."""
        chosen = self._options.chosen
        names = chosen.subscribe or sorted({tp.topic for tp in chosen.assign})
        found = self.present()
        cluster = self._client.client.cluster
        missing = next((name for name in names if name not in cluster.topics), None)
        if missing is not None:
            code = cluster.errors.get(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise KafkaError(code, f"there is no topic {missing} in {self._options.connecting.bootstrap}")
        strange = next((tp for tp in chosen.assign if tp not in found), None)
        if strange is not None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {strange}")
        return found

    def present(self) -> list[TopicPartition]:
        """Those that are chosen and that there are."""
        chosen = self._options.chosen
        names = None if chosen.pattern is not None else chosen.subscribe or {tp.topic for tp in chosen.assign}
        with reaching(self._options.connecting):
            cluster = self._client.call(
                self._client.client.retrying, lambda: self._client.client.refresh(names)
            )
        found: list[TopicPartition] = []
        for name, topic in cluster.topics.items():
            # What a query writes into the ledger must not be its own next input, for ever.
            is_internal = topic.is_internal or name in (LEDGER_TOPIC, HISTORY_TOPIC)
            partitions = (TopicPartition(name, p) for p in topic.partitions)
            found += [tp for tp in partitions if chosen.includes(tp, is_internal=is_internal)]
        return sorted(found)

    def look_up(self, times: Mapping[TopicPartition, int], isolation: int | None = None) -> Offsets:
        """Offsets of times; the ends are those that this reader is shown, or one of another isolation."""
        if not times:
            return {}
        level = self._options.isolation if isolation is None else isolation
        with reaching(self._options.connecting):
            found = self._client.call(self._client.admin.list_offsets, times, isolation_level=level)
        return {tp: int(answer.offset) for tp, answer in found.items()}

    def ends(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return self.look_up(dict.fromkeys(partitions, LATEST))

    def written_ends(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Open transactions included."""
        return self.look_up(dict.fromkeys(partitions, LATEST), READ_UNCOMMITTED)

    def starts(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return self.look_up(dict.fromkeys(partitions, EARLIEST))

    def resolve(self, partitions: Sequence[TopicPartition], bounds: OffsetBounds, *, side: str) -> Offsets:
        """Where to begin or to end, in offsets."""
        by_time = dict(bounds.timestamps)
        if bounds.timestamp is not None:
            by_time = dict.fromkeys(partitions, bounds.timestamp)
        given = {**bounds.offsets, **by_time}
        strange = sorted(tp for tp in given if tp not in partitions)
        missing = sorted(tp for tp in partitions if tp not in given)
        if given and (strange or missing):
            told = f"{strange[0]} is not read" if strange else f"{missing[0]} is missing"
            raise OptionError(f"{side} offsets must name every partition that is read, and no other: {told}")
        if by_time:
            return self._at_times(by_time, side)
        wanted = {tp: bounds.offsets.get(tp, bounds.default) for tp in partitions}
        found = self.look_up({tp: offset for tp, offset in wanted.items() if offset < 0})
        return {tp: found.get(tp, offset) for tp, offset in wanted.items()}

    def _at_times(self, times: Mapping[TopicPartition, int], side: str) -> Offsets:
        found = self.look_up(times)
        late = sorted(tp for tp, offset in found.items() if offset < 0)
        if late and side == "starting" and not self._options.latest_if_no_time:
            raise OptionError(
                f"{late[0]} has no record at or after the time {times[late[0]]} "
                "(startingOffsetsByTimestampStrategy=latest begins at its end)"
            )
        return {**found, **self.ends(late)}


@cause_first
class Reader(SentToTasks, DataSourceReader):
    def __init__(self, options: SourceOptions, wanted: tuple[Column, ...] | None = None) -> None:
        self._options = options
        self._wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        topics = Topics(self._options)
        found = topics.partitions()
        starts = topics.resolve(found, self._options.starting, side="starting")
        ends = topics.resolve(found, self._options.ending, side="ending")
        return _tasks([OffsetRange(tp, starts[tp], ends[tp]) for tp in found], self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from _read(partition, self._options, self._wanted)


@cause_first
class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Of a stream that cannot begin. To make it must not fail: Spark would tell of a reader that it could not
    stop, and not of the cause."""

    def __init__(self, cause: Exception) -> None:
        self._cause = cause

    def prepareForTriggerAvailableNow(self) -> None:
        raise self._cause

    def initialOffset(self) -> dict[str, Any]:
        raise self._cause

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        raise self._cause

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        raise self._cause

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._cause


@cause_first
class StreamReader(SentToTasks, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives on the driver for as long as the query runs; `read` is sent to the tasks without its state."""

    def __init__(self, options: SourceOptions, wanted: tuple[Column, ...] | None = None) -> None:
        self._options = options
        self._wanted = wanted
        self._until: Offsets | None = None
        self._initial: Offsets | None = None
        self._last_batch_at: float | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        topics = Topics(self._options)
        self._until = topics.ends(topics.present())

    def initialOffset(self) -> dict[str, Any]:
        topics = Topics(self._options)
        self._initial = topics.resolve(topics.partitions(), self._options.starting, side="starting")
        return to_json(self._initial, topics.cluster_id, topics.ids)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        topics = Topics(self._options)
        present = topics.present()
        begin = self._still_valid(start, start, topics, present)
        ends = self._ends(begin, topics, present)
        fresh = self._starts_of_new([tp for tp in ends if tp not in begin], topics)
        known = {**begin, **fresh}
        if self._should_wait(sum(max(ends[tp] - known[tp], 0) for tp in ends)):
            return start
        if isinstance(limit, ReadMaxRows):
            ends = limit_to(limit.max_rows, known, ends)
        # Spark's checkpoint has the ends of batches: where the first one begins is in no other place.
        is_first = begin == self._initial
        end = to_json(ends, topics.cluster_id, topics.ids, known if is_first else fresh)
        return start if is_same_place(start, end) else end

    def reportLatestOffset(self) -> dict[str, Any]:
        topics = Topics(self._options)
        return to_json(topics.ends(topics.present()), topics.cluster_id, topics.ids)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        topics = Topics(self._options)
        present = topics.present()
        begin = self._still_valid(start, end, topics, present)
        ends = self._still_valid(end, end, topics, present)
        if start == end:
            return []
        # Not asked for again: a batch that is run again must be what it was, whatever retention did since,
        # and wherever a query with startingOffsets=latest would begin now.
        known = {**dict.fromkeys(ends, 0), **begin, **starts_of(end)}
        return _tasks([OffsetRange(tp, known[tp], ends[tp]) for tp in sorted(ends)], self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from _read(partition, self._options, self._wanted)

    def commit(self, end: dict[str, Any]) -> None:
        """The checkpoint remembers; the sink publishes."""

    def stop(self) -> None:
        """Connections end with the process."""

    def _still_valid(
        self, offsets: dict[str, Any], seen: dict[str, Any], topics: Topics, present: Sequence[TopicPartition]
    ) -> Offsets:
        """The offsets of a checkpoint without deleted partitions, if that is allowed. `seen` has the topics
        that the batch was planned for: deletions that it already knew are not reported again."""
        wanted, cluster_id = from_json(offsets)
        if None not in (cluster_id, topics.cluster_id) and cluster_id != topics.cluster_id:
            raise DataLossError(
                f"the checkpoint belongs to the cluster {cluster_id}, but "
                f"{self._options.connecting.bootstrap} is {topics.cluster_id}"
            )
        for name in made_anew(seen, topics.ids):
            self._lose(
                f"the topic {name} was deleted and recreated since it was read",
                "continues with the new one, from its beginning",
            )
        gone = sorted(set(wanted) - set(present))
        strange = [tp for tp in gone if not self._options.chosen.includes(tp)]
        if strange:
            self._lose(
                f"the checkpoint has offsets of {_first_of(strange)}, but this query reads "
                f"{self._options.chosen}: was that changed, or is it the checkpoint of another query?",
                "continues without them",
            )
        gone = [tp for tp in gone if tp not in strange]
        if gone:
            self._lose(
                f"{_first_of(gone)} was read before, but does not exist any more", "continues without it"
            )
        anew = set(made_anew(offsets, topics.ids))
        return {tp: offset for tp, offset in wanted.items() if tp in present and tp.topic not in anew}

    def _ends(self, begin: Offsets, topics: Topics, present: Sequence[TopicPartition]) -> Offsets:
        """Where the partitions end. One that ends before what was read of it has lost records."""
        until = self._until
        if until is None:
            ends = topics.ends(present)
        else:
            ends = {tp: until.get(tp, begin.get(tp, 0)) for tp in present if tp in until or tp in begin}
        back = sorted(tp for tp, offset in ends.items() if offset < begin.get(tp, 0))
        written = topics.written_ends(back)
        for tp in back:
            if written[tp] >= begin[tp]:
                # Nothing is lost: it was read at read_uncommitted before, into a transaction that is open.
                ends[tp] = begin[tp]
                continue
            self._lose(
                f"{tp} ends at offset {written[tp]}, but was read up to {begin[tp]} before: was it cut "
                "off, or deleted and recreated?",
                "continues from its end",
            )
        return ends

    def _starts_of_new(self, new: Sequence[TopicPartition], topics: Topics) -> Offsets:
        starts = topics.starts(new)
        for tp, offset in sorted(starts.items()):
            if offset > 0:
                self._lose(
                    f"{tp} is new to this query and begins at offset {offset}, not at 0: earlier records are "
                    "gone",
                    f"begins at {offset}",
                )
        return starts

    def _lose(self, what: str, otherwise: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{what} (failOnDataLoss=false {otherwise})")
        _log.warning("%s: failOnDataLoss=false %s", what, otherwise)

    def _should_wait(self, rows: int) -> bool:
        """minOffsetsPerTrigger: until there is enough, or for as long as maxTriggerDelay says after the last
        batch. The first waits for nothing."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._until is not None:
            return False
        now, last = time.monotonic(), self._last_batch_at
        is_early = last is not None and (now - last) * 1000 < self._options.max_trigger_delay_ms
        if rows < least and is_early:
            return True
        if rows:
            self._last_batch_at = now
        return False


def _first_of(partitions: Sequence[TopicPartition]) -> str:
    more = f" and {len(partitions) - 1} partitions more" if len(partitions) > 1 else ""
    return f"{partitions[0]}{more}"


def _tasks(ranges: Sequence[OffsetRange], options: SourceOptions) -> list[InputPartition]:
    pieces = split(ranges, options.min_partitions, options.max_records_per_partition)
    return [TaskRanges(wanted) for wanted in pack(pieces, options.min_records_per_partition)]


def _read(
    partition: InputPartition, options: SourceOptions, wanted: tuple[Column, ...] | None
) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, TaskRanges):
        return  # Spark's own, where there is nothing to read
    freeze_what_is_loaded()
    with reaching(options.connecting):
        client = client_of(options.connecting)
        batches = read_ranges(client, partition.wanted, options)
        yield from batches if wanted is None else (_project(batch, wanted) for batch in batches)


def _project(batch: pa.RecordBatch, wanted: tuple[Column, ...]) -> pa.RecordBatch:
    columns = [batch.column(column.name) for column in wanted]
    shown = [a.view(pa.string()) if c.is_text else a for a, c in zip(columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(shown, [column.name for column in wanted])
