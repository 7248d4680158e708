"""The states of a transactional producer and the moves between them, as a table. Pure."""

from enum import Enum


class State(Enum):
    """Seed 000's producer-client machine. READY has an identity and no transaction; PREPARED waits for the
    decision of an outside coordinator; from ABORTABLE_ERROR only an abort leads on, from FATAL_ERROR nothing.
    """

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    PREPARED = "prepared"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


# State -> the states it may be entered from.
VALID_PREVIOUS: dict[State, frozenset[State]] = {
    State.UNINITIALIZED: frozenset({State.ABORTABLE_ERROR}),
    State.INITIALIZING: frozenset({State.UNINITIALIZED, State.COMMITTING, State.ABORTING}),
    State.READY: frozenset({State.INITIALIZING, State.COMMITTING, State.ABORTING}),
    State.IN_TRANSACTION: frozenset({State.READY}),
    State.PREPARED: frozenset({State.IN_TRANSACTION, State.INITIALIZING}),
    State.COMMITTING: frozenset({State.IN_TRANSACTION, State.PREPARED}),
    State.ABORTING: frozenset({State.IN_TRANSACTION, State.PREPARED, State.ABORTABLE_ERROR}),
    State.ABORTABLE_ERROR: frozenset(
        {State.INITIALIZING, State.IN_TRANSACTION, State.COMMITTING, State.ABORTABLE_ERROR}
    ),
    State.FATAL_ERROR: frozenset(State),
}


def may_follow(state: State, previous: State) -> bool:
    return previous in VALID_PREVIOUS[state]
