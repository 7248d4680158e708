"""What an error code means to a transactional producer at each step, and which error its user gets.

The verdicts are those of Apache Kafka's own client, 4.3.1. Pure.

    KafkaError
    ├── AbortableError         this transaction cannot be committed: abort it, then go on
    └── FatalError             this producer is finished: close it, begin with a new one
    TimeoutError
    └── OutcomeUnknownError    the end of a transaction was asked for and not confirmed: ask again
"""

from enum import Enum

from odradek.core.errors import ErrorCode, KafkaError


class AbortableError(KafkaError):
    """The transaction can only be aborted; the producer can be used after that."""


class FatalError(KafkaError):
    """The producer can do nothing more: another one has taken its place, or it is not allowed to go on."""


class OutcomeUnknownError(TimeoutError):
    """Nobody confirmed the commit or abort in time, and it may have happened.

    The same call again finds out. So does a new producer with the same transactional id: its
    `init_transactions` ends what is still open, and a read_committed reader then sees which it was.
    """


class Step(Enum):
    FIND_COORDINATOR = "finding the coordinator"
    INIT = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    PRODUCE = "Produce"
    END = "EndTxn"


class Verdict(Enum):
    """BUMP is abortable where the epoch can be raised after the abort, else fatal."""

    DONE = "done"
    RETRY = "retry"
    ABORTABLE = "abortable"
    BUMP = "bump"
    FATAL = "fatal"


E = ErrorCode
MOVED = frozenset({E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE})
"""Ask again who the coordinator is."""

FENCED = frozenset({E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED})
"""From a coordinator both say that a newer producer has this transactional id."""

_OTHERWISE = {
    Step.FIND_COORDINATOR: Verdict.FATAL,
    Step.INIT: Verdict.FATAL,
    Step.ADD_PARTITIONS: Verdict.ABORTABLE,
    Step.ADD_OFFSETS: Verdict.FATAL,
    Step.COMMIT_OFFSETS: Verdict.FATAL,
    Step.PRODUCE: Verdict.ABORTABLE,
    Step.END: Verdict.FATAL,
}
_ABORTABLE = {
    Step.FIND_COORDINATOR: {E.GROUP_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE},
    Step.INIT: {
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.TRANSACTION_ABORTABLE,
    },
    Step.ADD_OFFSETS: {E.GROUP_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE},
    Step.COMMIT_OFFSETS: {
        E.GROUP_AUTHORIZATION_FAILED,
        E.FENCED_INSTANCE_ID,
        E.TRANSACTION_ABORTABLE,
        E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
    },
    Step.END: {E.TRANSACTION_ABORTABLE},
}
_BUMP = {
    Step.ADD_PARTITIONS: {E.UNKNOWN_PRODUCER_ID},
    Step.ADD_OFFSETS: {E.UNKNOWN_PRODUCER_ID},
    Step.END: {E.UNKNOWN_PRODUCER_ID},
}
_FATAL = {
    Step.ADD_PARTITIONS: {
        *FENCED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.INVALID_TXN_STATE,
        E.INVALID_PRODUCER_ID_MAPPING,
    },
    Step.PRODUCE: {
        E.PRODUCER_FENCED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.UNSUPPORTED_VERSION,
        E.INVALID_PRODUCER_ID_MAPPING,
    },
}


def judge(step: Step, code: ErrorCode) -> Verdict:
    """What the answer to a step means. For a produce: what it means once it is not tried again."""
    if code is E.NONE:
        return Verdict.DONE
    if step is not Step.PRODUCE and (code.retriable or code is E.BROKER_NOT_AVAILABLE):
        return Verdict.RETRY
    for verdict, codes in (
        (Verdict.ABORTABLE, _ABORTABLE),
        (Verdict.BUMP, _BUMP),
        (Verdict.FATAL, _FATAL),
    ):
        if code in codes.get(step, ()):
            return verdict
    return _OTHERWISE[step]
