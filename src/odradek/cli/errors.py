"""What went wrong, for a person: the thing, Kafka's code, the likely cause and the next command.

Commands raise `Failure` (exit 1), `Usage` (exit 2) or `FoundProblem` (exit 3). `kafka_failure` and
`connection_failure` put errors of the cluster and the network into words.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from odradek.core.errors import ErrorCode, KafkaError

OK, FAILED, USAGE, FOUND = 0, 1, 2, 3


class Failure(Exception):
    """The command failed, or failed for some of its items."""

    exit_code = FAILED

    def __init__(self, message: str | Sequence[str], hint: str | None = None) -> None:
        """A message of several lines is a sequence: on a terminal, a line end within a line is escaped."""
        self.lines = (message,) if isinstance(message, str) else tuple(message)
        self.hint = hint
        super().__init__("\n".join(self.lines))


class Failures(Failure):
    """Several items failed, each in its own way."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__("; ".join(str(failure) for failure in failures))
        self.failures = tuple(failures)


class Usage(Failure):
    """The command line cannot be taken as it is."""

    exit_code = USAGE


class FoundProblem(Failure):
    """A check did its work and found a problem."""

    exit_code = FOUND


@contextmanager
def usage() -> Iterator[None]:
    """Turn a ValueError about a value of the command line into a usage error."""
    try:
        yield
    except ValueError as e:
        raise Usage(str(e)) from e


def raise_all(failures: Sequence[Failure]) -> None:
    """Fail if anything failed."""
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise Failures(failures)


# Kafka's code -> (likely cause, next command). {} stands for the thing the command was about.
_ADVICE: dict[ErrorCode, tuple[str, str | None]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ("there is no such topic or partition", "odradek topic list"),
    ErrorCode.UNKNOWN_TOPIC_ID: ("the topic was deleted or recreated meanwhile", "odradek topic list"),
    ErrorCode.TOPIC_ALREADY_EXISTS: ("a topic with this name already exists", "odradek topic describe {}"),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "a topic name has 1 to 249 letters, digits, dots, underscores and hyphens",
        None,
    ),
    ErrorCode.INVALID_REPLICATION_FACTOR: ("more replicas than brokers", "odradek cluster info"),
    ErrorCode.INVALID_PARTITIONS: ("partitions can only be added", "odradek topic describe {}"),
    ErrorCode.INVALID_CONFIG: ("a configuration is unknown or out of range", None),
    ErrorCode.TOPIC_DELETION_DISABLED: (
        "the brokers run with delete.topic.enable=false",
        "odradek cluster config",
    ),
    ErrorCode.OFFSET_OUT_OF_RANGE: ("the offset is before the start or beyond the end of the log", None),
    ErrorCode.LEADER_NOT_AVAILABLE: (
        "an election is in progress, or no replica is alive",
        "odradek cluster info",
    ),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ("the leader has moved to another broker", "try again"),
    ErrorCode.NOT_ENOUGH_REPLICAS: ("fewer replicas are in sync than min.insync.replicas requires", None),
    ErrorCode.MESSAGE_TOO_LARGE: (
        "a record is larger than the topic's max.message.bytes",
        "odradek topic alter {} --set max.message.bytes=BYTES",
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: ("there is no such group", "odradek group list"),
    ErrorCode.NON_EMPTY_GROUP: ("the group has members: stop them first", "odradek group members {}"),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "members read this topic: stop them first",
        "odradek group members {}",
    ),
    ErrorCode.UNKNOWN_MEMBER_ID: ("the group has members: stop them first", "odradek group members {}"),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ("the coordinator is not available yet", "try again"),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ("the coordinator is loading", "try again"),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: ("there is no such transactional id", "odradek txn list"),
    ErrorCode.INVALID_PRODUCER_EPOCH: ("the transaction has ended meanwhile", "odradek txn producers {}"),
    ErrorCode.CONCURRENT_TRANSACTIONS: ("the transaction is being ended", "odradek txn describe {}"),
    ErrorCode.REQUEST_TIMED_OUT: ("the cluster did not answer in time", "odradek cluster info"),
    ErrorCode.NETWORK_EXCEPTION: ("the connection broke", "odradek cluster info"),
    ErrorCode.UNSUPPORTED_VERSION: ("the cluster does not support a request that this command needs", None),
    ErrorCode.KAFKA_STORAGE_ERROR: ("a log directory failed on the broker", "odradek cluster logdirs"),
    ErrorCode.POLICY_VIOLATION: ("a policy of the cluster forbids it", None),
}


def kafka_failure(thing: str, subject: str, error: KafkaError) -> Failure:
    """The failure of one thing (`topic orders`), in the cluster's words or ours; `subject` fills the hint."""
    cause, command = _ADVICE.get(error.code, ("", None))
    said = error.message or cause
    message = f"{thing}: {error.code.name}" + (f": {said}" if said else "")
    return Failure(message, f"next: {command.format(subject)}" if command else None)


def connection_failure(servers: str, error: OSError) -> Failure:
    """No broker could be reached."""
    if error.errno == errno.ECONNREFUSED:
        return Failure(f"nothing listens on {servers}", "is a node running? next: odradek start")
    if isinstance(error, TimeoutError):
        return Failure(f"no answer from {servers} in time", "is the address right? -b HOST:PORT")
    if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return Failure(f"{servers}: {error}", "the node's log says why it closed the connection")
    reason = error.strerror or str(error)
    return Failure(f"cannot connect to {servers}: {reason}", "is the address right? -b HOST:PORT")
