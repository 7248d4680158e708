"""The states of a transaction and the transitions between them, with Kafka's numbers and names."""

from enum import IntEnum
from typing import Final


class TxnState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name in ListTransactions and DescribeTransactions, such as `PrepareCommit`."""
        return _TITLES[self]


_TITLES: Final = {state: state.name.title().replace("_", "") for state in TxnState}
BY_TITLE: Final = {title: state for state, title in _TITLES.items()}

_AT_REST: Final = frozenset({TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT})

VALID_PREVIOUS: Final[dict[TxnState, frozenset[TxnState]]] = {
    TxnState.EMPTY: _AT_REST,
    TxnState.ONGOING: _AT_REST | {TxnState.ONGOING},
    TxnState.PREPARE_COMMIT: frozenset({TxnState.ONGOING}),
    # With an epoch per transaction, a client that lost answers may abort a transaction that never began.
    TxnState.PREPARE_ABORT: _AT_REST | {TxnState.ONGOING, TxnState.PREPARE_EPOCH_FENCE},
    TxnState.COMPLETE_COMMIT: frozenset({TxnState.PREPARE_COMMIT}),
    TxnState.COMPLETE_ABORT: frozenset({TxnState.PREPARE_ABORT}),
    TxnState.DEAD: _AT_REST,
    TxnState.PREPARE_EPOCH_FENCE: frozenset({TxnState.ONGOING}),
}
"""The states from which each state may be entered. Nothing leaves DEAD."""

PREPARED: Final = frozenset({TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT})
"""Decided, but not all markers are written."""
AT_REST: Final = _AT_REST
"""No transaction is open or ending."""
