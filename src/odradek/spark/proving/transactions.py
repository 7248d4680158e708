"""Whether the committed transactions in the output are those that the decisions name, each whole. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.spark.ledger.ledger import Decision, Participant, Stream
from odradek.spark.proving.violations import DUPLICATE, FOREIGN, LOST, Violation

CHECK = "transactions"
_SHOWN = 4

NO_TRANSACTION = ProducerIdAndEpoch(-1, -1)


class Written(NamedTuple):
    """What is committed of one transaction in one partition. Its marker has the next epoch already and is
    not counted."""

    tp: TopicPartition
    producer: ProducerIdAndEpoch
    records: int
    first_offset: int
    last_offset: int


class Judged(NamedTuple):
    outputs: int
    """Records in the output, of the streams' own transactions."""
    transactions: int
    """Of the streams, with records in the output."""
    other_records: int
    """Of transactions and producers that have nothing to do with these streams."""
    unfinished: int
    """Transactions that are decided and not ended yet."""
    violations: list[Violation]


def merge(found: Iterable[Written]) -> list[Written]:
    """A partition may have been counted in pieces."""
    merged: dict[tuple[TopicPartition, ProducerIdAndEpoch], Written] = {}
    for written in found:
        key = (written.tp, written.producer)
        known = merged.get(key)
        if known is not None:
            first = min(known.first_offset, written.first_offset)
            last = max(known.last_offset, written.last_offset)
            written = Written(*key, known.records + written.records, first, last)
        merged[key] = written
    return [merged[key] for key in sorted(merged)]


def participants_of(decisions: Iterable[Decision]) -> dict[ProducerIdAndEpoch, tuple[int, Participant]]:
    return {
        ProducerIdAndEpoch(p.producer_id, p.producer_epoch): (decision.batch, p)
        for decision in decisions
        for p in decision.participants
    }


class Judge:
    """Holds what was written against what was decided, stream by stream."""

    def __init__(
        self,
        sink: str,
        written: Sequence[Written],
        named: Collection[ProducerIdAndEpoch],
        unfinished: Collection[str],
        log_starts: Mapping[TopicPartition, int],
        *,
        has_all: bool = False,
    ) -> None:
        """`named` by any decision, also later ones and those of other streams. `unfinished` are transactional
        ids that are open: if it is the last decision that names them, it is being carried out. `has_all`: the
        history has every decision that was ever made; else only streams that begin with batch 0 are whole."""
        self._sink = sink
        self._written = written
        self._named = named
        self._unfinished = unfinished
        self._log_starts = log_starts
        self._violations: list[Violation] = []
        self._ours: set[ProducerIdAndEpoch] = set()
        self._decided: set[ProducerIdAndEpoch] = set()
        self._has_all = has_all
        self._is_whole = True
        self._waiting = 0
        self._outputs = 0
        self._transactions = 0

    def judge(self, stream: Stream, decisions: Sequence[Decision], own_ids: Mapping[int, str]) -> None:
        """`own_ids`: producer ids of the stream, with their transactional ids."""
        decided = participants_of(decisions)
        self._ours |= set(decided)
        self._decided |= set(decided)
        found: dict[ProducerIdAndEpoch, list[Written]] = {}
        for written in self._written:
            found.setdefault(written.producer, []).append(written)
        for producer, (batch, participant) in decided.items():
            is_last = batch == decisions[-1].batch
            if is_last and participant.transactional_id in self._unfinished:
                self._waiting += 1
                continue
            self._count(stream, batch, participant, found.get(producer, []))
        known_ids = {p.producer_id: p.transactional_id for _, p in decided.values()}
        is_whole = self._has_all or decisions[0].batch == 0
        self._is_whole = self._is_whole and is_whole
        self._find_unnamed(stream, {**own_ids, **known_ids}, set(decided), is_whole)

    def judge_others(self, ids: Mapping[int, str]) -> None:
        """What is in the output and of nobody that is known. `ids`: transactional ids, by producer id."""
        strangers: dict[int, list[Written]] = {}
        first_known = self._first_known(self._decided)
        for written in self._written:
            if written.tp.topic != self._sink or written.producer in (self._ours | set(self._named)):
                continue
            if self._is_older(written, first_known, self._is_whole):
                continue
            strangers.setdefault(written.producer.producer_id, []).append(written)
        for producer_id, found in sorted(strangers.items()):
            self._add_strangers(producer_id, ids.get(producer_id), found)

    def _add_strangers(self, producer_id: int, name: str | None, found: Sequence[Written]) -> None:
        records = sum(w.records for w in found)
        places = ", ".join(f"{w.tp} offsets {w.first_offset} to {w.last_offset}" for w in found[:_SHOWN])
        places += f" and {len(found) - _SHOWN} more places" if len(found) > _SHOWN else ""
        who = f"{name or 'a transactional producer'} (producer {producer_id}) committed"
        if producer_id == NO_TRANSACTION.producer_id:
            who = "producers without transactions wrote"
        told = f"{who} {records} records ({places}), but no decision covers them"
        self._violations.append(Violation(CHECK, FOREIGN, records, None, None, places, told))

    def result(self) -> Judged:
        other = sum(
            w.records for w in self._written if w.tp.topic == self._sink and w.producer not in self._ours
        )
        return Judged(self._outputs, self._transactions, other, self._waiting, self._violations)

    def _count(self, stream: Stream, batch: int, participant: Participant, found: list[Written]) -> None:
        in_sink = [w for w in found if w.tp.topic == self._sink]
        self._outputs += sum(w.records for w in in_sink)
        self._transactions += bool(in_sink)
        records = sum(w.records for w in found)
        if records == participant.rows:
            return
        who = (
            f"{participant.transactional_id} (producer {participant.producer_id}, "
            f"epoch {participant.producer_epoch})"
        )
        places = ", ".join(f"{topic}-{partition}" for topic, partition in participant.partitions)
        told = f"{who} committed {participant.rows} records to {places}, but {records} are there"
        kind = LOST if records < participant.rows else DUPLICATE
        told += self._cut(participant) if kind == LOST else ""
        self._add(kind, abs(records - participant.rows), stream, batch, places, told)

    def _cut(self, participant: Participant) -> str:
        """Where the records of a partition have been deleted, the likely cause."""
        starts = [
            f"{tp} begins at offset {self._log_starts[tp]}"
            for tp in (TopicPartition(*place) for place in participant.partitions)
            if self._log_starts.get(tp)
        ]
        return f" ({', '.join(starts)}: records before it were deleted)" if starts else ""

    def _find_unnamed(
        self, stream: Stream, own_ids: Mapping[int, str], decided: set[ProducerIdAndEpoch], is_whole: bool
    ) -> None:
        """Transactions of the stream that no decision names. What lies before the first one that is named is
        not judged where the history of decisions does not go back to the first batch."""
        first_known = self._first_known(decided)
        for written in self._written:
            producer, tp = written.producer, written.tp
            if tp.topic != self._sink or producer in self._named or producer.producer_id not in own_ids:
                continue
            self._ours.add(producer)
            if self._is_older(written, first_known, is_whole):
                continue
            place = f"{tp} offsets {written.first_offset} to {written.last_offset}"
            told = (
                f"{own_ids[producer.producer_id]} (producer {producer.producer_id}, epoch "
                f"{producer.producer_epoch}) committed {written.records} records to {place}, but no decision "
                "names this transaction"
            )
            self._add(DUPLICATE, written.records, stream, None, place, told)

    def _first_known(self, decided: Collection[ProducerIdAndEpoch]) -> dict[TopicPartition, int]:
        """Where the first record is that a decision names."""
        found: dict[TopicPartition, int] = {}
        for written in self._written:
            if written.producer in decided:
                known = found.get(written.tp, written.first_offset)
                found[written.tp] = min(known, written.first_offset)
        return found

    @staticmethod
    def _is_older(written: Written, first_known: Mapping[TopicPartition, int], is_whole: bool) -> bool:
        return not is_whole and written.last_offset < first_known.get(written.tp, written.last_offset + 1)

    def _add(self, kind: str, count: int, stream: Stream, batch: int | None, place: str, told: str) -> None:
        if batch is not None:
            told = f"batch {batch}: {told}"
        self._violations.append(Violation(CHECK, kind, count, str(stream), batch, place, told))
