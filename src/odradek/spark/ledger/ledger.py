"""The rules of the ledger: which micro-batches are decided, by which run, and what may follow. Pure.

A batch of a stream (one query, one sink) is written by participants, in transactions that they leave open.
One record in the ledger decides it: the commit point. The participants are committed after that. A run that
writes to the ledger has fenced all other writers and has read the ledger since. So decisions come one after
another, and each one knows the previous one. docs/spark.md explains why every rule is needed.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LEDGER_TOPIC = "__odradek_ledger"
"""Compacted: the last decision of every stream. Small, since it is read whole by every new process."""

HISTORY_TOPIC = "__odradek_decisions"
"""Every decision, for as long as its retention says; written in the same transactions."""

LONGEST_MEMORY = 256
"""How many runs a stream remembers not to listen to."""

MOST_TOPICS = 64
"""How many of the topics that a stream wrote to its entry names."""

KEPT_AFTER_A_JOB_MS = 86_400_000
"""How long after a plain write without an idempotencyKey the ledger tells late attempts that it is over."""

_FORMAT = 1


class LedgerError(Exception):
    """The batch cannot be decided. Nothing was written."""


class SupersededError(LedgerError):
    """Another run of this query decides now; this one must stop, and must not fence again."""


class Stream(NamedTuple):
    """Whose batches: a query may have several sinks."""

    query: str
    sink: str

    def __str__(self) -> str:
        return f"{self.query}/{self.sink}"


class Range(NamedTuple):
    """What a batch was made of: the offsets of its sources, as Spark's checkpoint has them."""

    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        return bool(self.end)

    def __str__(self) -> str:
        return f"{' '.join(self.start) or 'the beginning'} to {' '.join(self.end)}" if self.is_known else "?"


class Participant(NamedTuple):
    """A transaction that was left open, to be committed with the batch."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    rows: int
    partitions: tuple[tuple[str, int], ...]


class Decision(NamedTuple):
    """The batch is committed: its participants will be, whatever happens. `job` tells writes of one batch
    apart, where a program makes several."""

    batch: int
    run: str
    job: str
    range: Range
    participants: tuple[Participant, ...]
    decided_ms: int
    visible_ms: int | None = None
    """Of the batch before, if this run finished it: how long after its decision its last record was to be
    seen. Of this one that is not known yet."""


class LedgerEntry(NamedTuple):
    """What the ledger holds of a stream. `run` decides; those before it, which are `superseded`, may not."""

    run: str
    superseded: tuple[str, ...]
    decision: Decision
    topics: tuple[str, ...] = ()
    """Written to by any decision, as far as they are remembered."""
    name: str = ""
    """The query's, where it has one."""


class Propose(NamedTuple):
    """The batch is undecided and this run may decide it."""

    known: LedgerEntry | None


class Finish(NamedTuple):
    """The batch is decided: what is left to do is to commit its participants."""

    decision: Decision


def judge(
    entry: LedgerEntry | None, batch: int, run: str, range_: Range, *, skips: bool = False
) -> Propose | Finish:
    """What a run has to do about a batch that it has written. LedgerError where it must not decide it.

    `skips`: that batches before this one are not in this cluster's ledger is as it should be.
    """
    if entry is None:
        if batch > 0 and not skips:
            raise LedgerError(
                f"the checkpoint is at batch {batch}, but this cluster has no decision of this query: "
                "is it the checkpoint of another cluster, or was the ledger deleted? "
                "With the option adoptCheckpoint=true the query begins here"
            )
        return Propose(None)
    head = entry.decision
    if head.batch == batch:
        if range_.is_known and head.range.is_known and range_ != head.range:
            raise LedgerError(
                f"batch {batch} was committed with other records: it was {head.range}, "
                f"and is now {range_}. Is this an older copy of the checkpoint? Nothing was written"
            )
        return Finish(head)
    check_run(entry, run)
    if head.batch > batch:
        raise LedgerError(
            f"batch {batch} ({range_}) is older than the last one that was committed, "
            f"{head.batch} ({head.range}): this is an older copy of the checkpoint, or an older batchId. "
            "Nothing was written"
        )
    if head.batch + 1 < batch and not skips:
        raise LedgerError(
            f"the checkpoint is at batch {batch}, but the last one committed in this cluster is {head.batch} "
            f"({head.range}): the batches between are missing. "
            "With the option adoptCheckpoint=true the query goes on here"
        )
    return Propose(entry)


def check_run(entry: LedgerEntry | None, run: str) -> None:
    """Raise where another run has taken over."""
    if entry is not None and run in entry.superseded:
        raise SupersededError(
            f"another run ({entry.run}) of this query has taken over: two drivers use one checkpoint"
        )


def check_rows(decision: Decision, rows: int) -> None:
    """Raise where a batch that is run again has another number of rows: it is another one."""
    committed = sum(participant.rows for participant in decision.participants)
    if rows != committed:
        raise LedgerError(
            f"batch {decision.batch} was committed with {committed} records, and has {rows} now: is this an "
            "older copy of the checkpoint, or an older batchId? Nothing was written. With the option "
            "adoptCheckpoint=true it is taken for the one that was committed"
        )


def take_over(entry: LedgerEntry, run: str, job: str, others: Iterable[str]) -> LedgerEntry:
    """The last decision stands, and this run is the one to go on from it."""
    return decide(entry, entry.decision._replace(run=run, job=job), others)


def decide(known: LedgerEntry | None, decision: Decision, others: Iterable[str] = ()) -> LedgerEntry:
    """The entry that makes a batch committed. `others` are runs that were found, and will be swept."""
    before = () if known is None else (*known.superseded, known.run)
    superseded = dict.fromkeys(run for run in (*before, *others) if run != decision.run)
    topics = dict.fromkeys((*(() if known is None else known.topics), *topics_of(decision)))
    name = "" if known is None else known.name
    return LedgerEntry(
        decision.run, tuple(superseded)[-LONGEST_MEMORY:], decision, tuple(topics)[:MOST_TOPICS], name
    )


def topics_of(decision: Decision) -> list[str]:
    """Those that a batch was written to."""
    return sorted({topic for participant in decision.participants for topic, _ in participant.partitions})


def finished_jobs(view: "View", now_ms: int) -> dict[Stream, Decision]:
    """Plain writes that nobody can run again, and so long ago that no attempt of them is alive: their entries
    are not needed any more. A stream's entry is needed for as long as its checkpoint may be."""
    found: dict[Stream, Decision] = {}
    for key, entry in view.entries.items():
        stream, decision = Stream(**json.loads(key)), entry.decision
        if decision.job == stream.query and decision.decided_ms + KEPT_AFTER_A_JOB_MS < now_ms:
            found[stream] = decision
    return found


# --- transactional ids -----------------------------------------------------------------------------------


def participant_id(prefix: str, stream: Stream, run: str, worker: str, slot: int) -> str:
    """Only that worker process ever initialises this id."""
    return f"{stream_prefix(prefix, stream)}{run}.{worker}.{slot}"


def coordinator_id(prefix: str, stream: Stream) -> str:
    return f"{stream_prefix(prefix, stream)}coord"


def stream_prefix(prefix: str, stream: Stream) -> str:
    return f"{prefix}.{stream.query}.{stream.sink}."


def run_of(prefix: str, stream: Stream, transactional_id: str) -> str | None:
    """The run a participant belongs to; None for any other id."""
    start = stream_prefix(prefix, stream)
    parts = transactional_id[len(start) :].split(".") if transactional_id.startswith(start) else []
    return parts[0] if len(parts) == 3 else None


class Origin(NamedTuple):
    """Where a participant's transaction comes from, as its id tells."""

    stream: Stream
    run: str

    @property
    def is_plain(self) -> bool:
        """A df.write without an idempotencyKey: nobody can run it again."""
        return self.stream.query.startswith(self.run) and "-" not in self.stream.query


def origin_of(transactional_id: str) -> Origin | None:
    """None for an id that is none of ours. Only a query's name, which may be an idempotencyKey, has dots."""
    parts = transactional_id.split(".")
    if len(parts) < 6 or not parts[-1].isdigit():
        return None
    return Origin(Stream(".".join(parts[1:-4]), parts[-4]), parts[-3])


class SweepPlan(NamedTuple):
    """Ids to be fenced: at once, and when the ledger says that their runs are superseded. One of these might
    be about to decide."""

    doomed: list[str]
    unclaimed: list[str]
    unknown_runs: list[str]


def plan_sweep(
    entry: LedgerEntry | None, prefix: str, stream: Stream, run: str, found: Iterable[str]
) -> SweepPlan:
    """What is to be done about ids that are open, or could open a transaction still."""
    decided = {p.transactional_id for p in entry.decision.participants} if entry is not None else set()
    known = {run, *(entry.superseded if entry is not None else ())}
    doomed: list[str] = []
    unclaimed: list[str] = []
    unknown: dict[str, None] = {}
    for transactional_id in found:
        owner = run_of(prefix, stream, transactional_id)
        if owner is None or transactional_id in decided:
            continue
        if owner in known:
            doomed.append(transactional_id)
        else:
            unclaimed.append(transactional_id)
            unknown[owner] = None
    return SweepPlan(doomed, unclaimed, list(unknown))


# --- records ---------------------------------------------------------------------------------------------


def entry_key(stream: Stream) -> bytes:
    return json.dumps({"query": stream.query, "sink": stream.sink}, separators=(",", ":")).encode()


def encode_entry(entry: LedgerEntry) -> bytes:
    head = {"run": entry.run, "superseded": entry.superseded, "topics": entry.topics, "name": entry.name}
    return _json({"format": _FORMAT, **head, **_told(entry.decision)})


def encode_decision(stream: Stream, decision: Decision) -> bytes:
    """As the history has it."""
    return _json({"format": _FORMAT, **stream._asdict(), **_told(decision)})


def decode_entry(value: bytes) -> LedgerEntry:
    read = _read(value)
    decision = _decision(read["decision"])
    topics = tuple(read.get("topics", topics_of(decision)))
    return LedgerEntry(read["run"], tuple(read["superseded"]), decision, topics, read.get("name", ""))


def decode_decision(value: bytes) -> tuple[Stream, Decision]:
    read = _read(value)
    return Stream(read["query"], read["sink"]), _decision(read["decision"])


def _told(decision: Decision) -> dict[str, Any]:
    participants = [(*p[:4], _packed(p.partitions)) for p in decision.participants]
    return {
        "decision": {
            **decision._asdict(),
            "range": decision.range._asdict(),
            "participants": participants,
        }
    }


def _packed(partitions: Iterable[tuple[str, int]]) -> dict[str, str]:
    """{"orders": "0-3,7"}: hundreds of tasks may each have written to hundreds of partitions."""
    runs: dict[str, list[list[int]]] = {}
    for topic, partition in partitions:
        of_topic = runs.setdefault(topic, [])
        if of_topic and of_topic[-1][-1] == partition - 1:
            of_topic[-1][1:] = [partition]
        else:
            of_topic.append([partition])
    return {topic: ",".join("-".join(map(str, run)) for run in of_topic) for topic, of_topic in runs.items()}


def _unpacked(told: dict[str, str]) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for topic, runs in told.items():
        for run in runs.split(","):
            first, _, last = run.partition("-")
            found += [(topic, partition) for partition in range(int(first), int(last or first) + 1)]
    return tuple(found)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _read(value: bytes) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(value)
    if read["format"] != _FORMAT:
        raise LedgerError(f"the ledger is of format {read['format']}: a newer version wrote it")
    return read


def _decision(told: dict[str, Any]) -> Decision:
    participants = tuple(
        Participant(id_, producer_id, epoch, rows, _unpacked(partitions))
        for id_, producer_id, epoch, rows, partitions in told["participants"]
    )
    range_ = Range(tuple(told["range"]["start"]), tuple(told["range"]["end"]))
    return Decision(**{**told, "range": range_, "participants": participants})


# --- reading ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class View:
    """The committed entries, as they were at a position of the ledger, and what is not decided there yet.

    The ledger is read with its markers, not up to its last stable offset: a decision of another query that is
    being written must not keep this one waiting.
    """

    position: int = 0
    entries: dict[bytes, LedgerEntry] = field(default_factory=dict)
    pending: dict[int, dict[bytes, bytes | None]] = field(default_factory=dict)
    """By producer id: what it wrote in the transaction that is open."""

    def apply(self, producer_id: int, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        written = self.pending.setdefault(producer_id, {})
        for key, value in records:
            if key is not None:
                written[key] = value

    def end(self, producer_id: int, *, commit: bool) -> None:
        written = self.pending.pop(producer_id, {})
        if not commit:
            return
        for key, value in written.items():
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = decode_entry(value)

    def entry(self, stream: Stream) -> LedgerEntry | None:
        return self.entries.get(entry_key(stream))

    def is_pending(self, stream: Stream) -> bool:
        key = entry_key(stream)
        return any(key in written for written in self.pending.values())
