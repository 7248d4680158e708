"""Checkers of transactions after all clients have ended. Pure.

The names are Jepsen's where it has one. tests/unit/sim/test_txn_checkers.py checks that each one finds its
violation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import AT_REST, PREPARED, TxnState
from odradek.core.types import TopicPartition
from odradek.sim.checkers.txn_history import Reader, Txn, TxnFate

View = Mapping[TopicPartition, Sequence[tuple[int, bytes]]]
"""By partition: offsets and values that a read_committed consumer gets, in order."""


class Control(NamedTuple):
    """A transaction marker in a partition."""

    tp: TopicPartition
    offset: int
    producer_id: int
    producer_epoch: int
    commit: bool


def _places(view: View) -> dict[bytes, list[tuple[TopicPartition, int]]]:
    places: dict[bytes, list[tuple[TopicPartition, int]]] = {}
    for tp, records in view.items():
        for offset, value in records:
            places.setdefault(value, []).append((tp, offset))
    return places


def duplicates(view: View) -> list[str]:
    """No value is visible twice."""
    return [
        f"duplicate: {value!r} is visible at {' and '.join(f'{tp} {offset}' for tp, offset in places)}"
        for value, places in _places(view).items()
        if len(places) > 1
    ]


def lost_writes(txns: Iterable[Txn], view: View) -> list[str]:
    """Committed values are visible in their partition."""
    places = _places(view)
    return [
        f"lost write: {value!r} of {txn.producer} was committed to {tp} and is not visible"
        for txn in txns
        if txn.fate is TxnFate.COMMITTED
        for tp, value in txn.writes
        if tp not in [at for at, _ in places.get(value, ())]
    ]


def aborted_reads(txns: Iterable[Txn], view: View) -> list[str]:
    """Values that were not committed are not visible."""
    places = _places(view)
    return [
        f"aborted read: {value!r} of {txn.producer} was never committed and is visible at {places[value]}"
        for txn in txns
        if txn.fate is TxnFate.ABORTED
        for _, value in txn.writes
        if value in places
    ]


def torn_transactions(txns: Iterable[Txn], view: View) -> list[str]:
    """A transaction is visible as a whole or not at all."""
    places = _places(view)
    found = []
    for txn in txns:
        visible = [value for _, value in txn.writes if value in places]
        if visible and len(visible) < len(txn.writes):
            found.append(
                f"torn transaction {txn.number} of {txn.producer} ({txn.fate.value}): "
                f"{len(visible)} of {len(txn.writes)} writes are visible"
            )
    return found


def nonmonotonic_sends(txns: Iterable[Txn], view: View) -> list[str]:
    """In each partition the values of one producer instance are in the order of sending."""
    order: dict[bytes, tuple[str, int]] = {}
    count: dict[str, int] = {}
    for txn in txns:
        for _, value in txn.writes:
            count[txn.producer] = count.get(txn.producer, 0) + 1
            order[value] = (txn.producer, count[txn.producer])
    found = []
    for tp, records in view.items():
        last: dict[str, int] = {}
        for offset, value in records:
            if value in order:
                producer, place = order[value]
                if place < last.get(producer, 0):
                    found.append(f"nonmonotonic send: {value!r} is at {tp} {offset}, after later writes")
                last[producer] = place
    return found


def wrong_polls(readers: Iterable[Reader], view: View) -> list[str]:
    """A consumer gets the visible values in order, each once, without a gap, up to its position."""
    found = []
    for reader in readers:
        offsets = [offset for offset, _ in reader.polled]
        if offsets != sorted(set(offsets)):
            found.append(f"nonmonotonic poll: {reader.name} of {reader.tp} got offsets {offsets[-20:]}")
        visible = [(o, value) for o, value in view[reader.tp] if o < reader.position]
        got = set(reader.polled)
        missed = [entry for entry in visible if entry not in got]
        known = set(visible)
        unseen = [entry for entry in reader.polled if entry not in known]
        if missed:
            found.append(f"poll skip: {reader.name} passed {missed[0]} of {reader.tp}, at {reader.position}")
        if unseen:
            found.append(f"aborted read: {reader.name} of {reader.tp} got {unseen[0]}, which is not visible")
    return found


def stuck(ends: Mapping[TopicPartition, tuple[int, int]], states: Iterable[TransactionMetadata]) -> list[str]:
    """After all timeouts nothing holds back a last stable offset, and no transactional id has an open
    transaction.

    `ends` has the last stable offset and the high watermark of each partition.
    """
    return [
        f"the last stable offset of {tp} is stuck at {last_stable}, below the high watermark {high_watermark}"
        for tp, (last_stable, high_watermark) in ends.items()
        if last_stable != high_watermark
    ] + [
        f"transaction {txn.transactional_id} is stuck in {txn.state.name}"
        for txn in states
        if txn.state not in AT_REST
    ]


def wrong_markers(
    controls: Iterable[Control],
    log: Sequence[TransactionMetadata],
    partitions: Iterable[TopicPartition],
    *,
    compacted: bool = False,
) -> list[str]:
    """Every marker has its decision, every decision has its markers, and no transaction has two outcomes.

    `log` has all records of `__transaction_state` in order, `partitions` the existing partitions. If the log
    was `compacted`, it has only the newest state of a transactional id, so earlier markers are not checked.
    """
    decided: dict[tuple[int, int], list[TransactionMetadata]] = {}
    for txn in log:
        if txn.state in PREPARED:
            decided.setdefault((txn.producer_id, txn.producer_epoch), []).append(txn)
    found = []
    for key, decisions in decided.items():
        outcomes = {txn.state for txn in decisions}
        if decisions[0].client_version >= 2 and len(outcomes) > 1:
            found.append(f"producer {key} has both a commit and an abort")
    seen: set[tuple[TopicPartition, int, int, bool]] = set()
    for tp, offset, producer_id, epoch, commit in controls:
        seen.add((tp, producer_id, epoch, commit))
        wanted = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
        if not compacted and not any(
            t.state is wanted and tp in t.partitions for t in decided.get((producer_id, epoch), ())
        ):
            found.append(
                f"a marker without its transaction: {tp} {offset} {'COMMIT' if commit else 'ABORT'} "
                f"of producer {producer_id} epoch {epoch}"
            )
    existing = set(partitions)
    for (producer_id, epoch), decisions in decided.items():
        for txn in decisions:
            commit = txn.state is TxnState.PREPARE_COMMIT
            for tp in txn.partitions:
                if tp in existing and (tp, producer_id, epoch, commit) not in seen:
                    found.append(
                        f"{txn.transactional_id}: {tp} has no marker of producer {producer_id} {epoch}"
                    )
    return found


def not_exactly_once(inputs: Sequence[bytes], committed: int, copies: Sequence[bytes]) -> list[str]:
    """Every input below the committed offset has one copy, in order. The others have none."""
    wanted = [b"copy/" + value for value in inputs[:committed]]
    if list(copies) == wanted:
        return []
    for place, value in enumerate(wanted):
        if place >= len(copies) or copies[place] != value:
            got = copies[place] if place < len(copies) else None
            return [f"not exactly once: copy {place} of {committed} should be {value!r} and is {got!r}"]
    return [f"not exactly once: {copies[committed]!r} was copied, and its offset {committed} not committed"]


def replay_differs(
    live: Mapping[str, TransactionMetadata], log: Iterable[tuple[str, TransactionMetadata | None]]
) -> list[str]:
    """A replay of the log gives the live state, except the last epoch, which is not in the log."""
    replayed: dict[str, TransactionMetadata] = {}
    for name, txn in log:
        if txn is None:
            replayed.pop(name, None)
        else:
            replayed[name] = txn
    found = []
    for name in sorted({*live, *replayed}):
        known = live.get(name)
        if known is not None:
            known = known._replace(last_producer_epoch=-1)
        if known != replayed.get(name):
            found.append(f"transactional id {name} is {known}, and by its log {replayed.get(name)}")
    return found
