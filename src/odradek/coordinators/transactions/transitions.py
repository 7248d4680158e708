"""Checks a transition of a transactional id, in addition to the table of states. Pure.

Apache Kafka checks the same after it has written the record. Odradek checks before: an invalid transition is
never written, and the transaction stays as it is.
"""

from typing import TYPE_CHECKING

from odradek.coordinators.transactions.states import AT_REST, PREPARED, VALID_PREVIOUS, TxnState
from odradek.core.types import NO_TIMESTAMP

if TYPE_CHECKING:
    from odradek.coordinators.transactions.metadata import TransactionMetadata


def check(before: "TransactionMetadata", after: "TransactionMetadata") -> None:
    """Raises AssertionError for an invalid transition."""
    name = f"{before.transactional_id}: {before.state.name} to {after.state.name}"
    assert before.state in VALID_PREVIOUS[after.state], name
    assert after.last_update_ms >= before.last_update_ms, f"{name}: time goes back"
    assert _is_next_epoch(before, after), f"{name}: from {_identity(before)} to {_identity(after)}"
    assert _is_next_start(before, after), f"{name}: begun at {before.start_ms}, then at {after.start_ms}"
    if after.state is TxnState.ONGOING:
        assert set(before.partitions) <= set(after.partitions), f"{name}: partitions are gone"
    elif after.state in PREPARED or after.state is TxnState.PREPARE_EPOCH_FENCE:
        assert after.partitions == before.partitions, f"{name}: other partitions"
    else:
        assert not after.partitions, f"{name}: partitions are left"


def _identity(txn: "TransactionMetadata") -> str:
    return f"{txn.producer_id}:{txn.producer_epoch}"


def _is_next_epoch(before: "TransactionMetadata", after: "TransactionMetadata") -> bool:
    if after.state in (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT):
        return (after.producer_id, after.producer_epoch) == before.client
    if after.producer_id != before.producer_id:
        return after.state is TxnState.EMPTY and after.producer_epoch == 0
    if after.state is TxnState.ONGOING:
        return after.producer_epoch == before.producer_epoch
    return after.producer_epoch in (before.producer_epoch, before.producer_epoch + 1)


def _is_next_start(before: "TransactionMetadata", after: "TransactionMetadata") -> bool:
    """The start of a transaction never changes. If one that never began is aborted, the abort is its
    start."""
    if after.state in (TxnState.EMPTY, TxnState.DEAD):
        return after.start_ms == NO_TIMESTAMP
    if before.state in AT_REST:
        return NO_TIMESTAMP < after.start_ms <= after.last_update_ms
    return after.start_ms == before.start_ms
