"""Why a replica is not in sync: what it does now, how far it is behind, when it will have caught up. Pure;
under_replicated.py asks the cluster."""

from enum import Enum
from typing import NamedTuple

from odradek.core.types import TopicPartition


class Doing(Enum):
    """What a replica that is not in sync is doing or waiting for."""

    NOT_REGISTERED = "not registered"
    DOWN = "down"
    UNREACHABLE = "unreachable"
    RECOVERING = "recovering"
    FENCED = "fenced"
    DISK = "disk failed"
    NO_LEADER = "no leader"
    TRUNCATING = "truncating"
    FETCHING = "fetching"
    STALLED = "not fetching"
    CAUGHT_UP = "caught up"
    UNKNOWN = "unknown"


class Reach(Enum):
    """What became of a question to a broker."""

    ANSWERED = "answered"
    REFUSED = "refused"
    SILENT = "silent"
    """It accepted the connection, and did not answer."""
    TIMED_OUT = "timed out"
    """Not even a connection."""


class BrokerState(NamedTuple):
    """What is known of the broker of a replica."""

    broker_id: int
    is_registered: bool
    is_fenced: bool
    reach: Reach
    address: str | None = None
    unseen_since_ms: int | None = None
    """When it fetched metadata last."""


class Sample(NamedTuple):
    """A replica and its leader at one moment; None where it is not known."""

    at_s: float
    log_end: int | None
    leader_end: int | None
    size_bytes: int | None = None
    leader_bytes: int | None = None

    @property
    def lag(self) -> int | None:
        if self.log_end is None or self.leader_end is None:
            return None
        return max(0, self.leader_end - self.log_end)


class LaggingReplica(NamedTuple):
    """The answer. `records` of a broker that is down is an estimate: what the leader has since then."""

    tp: TopicPartition
    broker_id: int
    doing: Doing
    cause: str
    next: str
    records: int | None
    is_estimate: bool
    bytes: int | None
    since_ms: int | None
    records_per_s: float | None
    bytes_per_s: float | None
    catch_up_s: float | None


def explain(
    tp: TopicPartition,
    leader: int | None,
    broker: BrokerState,
    is_offline: bool,
    is_disk_error: bool,
    before: Sample,
    now: Sample,
    since_ms: int | None = None,
    estimate: int | None = None,
) -> LaggingReplica:
    """From two samples. `since_ms` is when the first record was written that the replica does not have."""
    doing = _doing(leader, broker, is_offline, is_disk_error, before, now)
    cause, advice = _words(doing, tp, leader, broker)
    elapsed_s = now.at_s - before.at_s
    records_per_s = bytes_per_s = catch_up_s = None
    if before.log_end is not None and now.log_end is not None and elapsed_s > 0:
        records_per_s = (now.log_end - before.log_end) / elapsed_s
    if before.size_bytes is not None and now.size_bytes is not None and elapsed_s > 0:
        bytes_per_s = (now.size_bytes - before.size_bytes) / elapsed_s
    if before.lag is not None and now.lag is not None and elapsed_s > 0:
        closing_per_s = (before.lag - now.lag) / elapsed_s
        if now.lag == 0:
            catch_up_s = 0.0
        elif closing_per_s > 0:
            catch_up_s = now.lag / closing_per_s
        elif doing is Doing.FETCHING:
            cause, advice = _falls_behind(tp, broker, leader)
    behind_bytes = None
    if now.size_bytes is not None and now.leader_bytes is not None:
        behind_bytes = max(0, now.leader_bytes - now.size_bytes)
    is_estimate = now.lag is None and estimate is not None
    return LaggingReplica(
        tp,
        broker.broker_id,
        doing,
        cause,
        advice,
        estimate if is_estimate else now.lag,
        is_estimate,
        behind_bytes,
        broker.unseen_since_ms if since_ms is None else since_ms,
        records_per_s,
        bytes_per_s,
        catch_up_s,
    )


def _doing(
    leader: int | None,
    broker: BrokerState,
    is_offline: bool,
    is_disk_error: bool,
    before: Sample,
    now: Sample,
) -> Doing:
    if not broker.is_registered:
        return Doing.NOT_REGISTERED
    if broker.reach is Reach.REFUSED:
        return Doing.DOWN
    if broker.reach is Reach.TIMED_OUT:
        return Doing.UNREACHABLE
    if broker.is_fenced:
        return Doing.RECOVERING if broker.reach is Reach.SILENT else Doing.FENCED
    if broker.reach is Reach.SILENT:
        return Doing.UNREACHABLE
    if is_offline or is_disk_error:
        return Doing.DISK
    if leader is None:
        return Doing.NO_LEADER
    if now.log_end is None or now.lag is None:
        return Doing.UNKNOWN
    if before.log_end is not None and now.log_end < before.log_end:
        return Doing.TRUNCATING
    if now.lag == 0:
        return Doing.CAUGHT_UP
    if before.log_end is not None and now.log_end > before.log_end:
        return Doing.FETCHING
    return Doing.STALLED


def _words(doing: Doing, tp: TopicPartition, leader: int | None, broker: BrokerState) -> tuple[str, str]:
    """The cause, and what to do next."""
    id_ = broker.broker_id
    at = "" if broker.address is None else f" at {broker.address}"
    look = f"look at the log of node {id_}"
    watch = f"odradek why under-replicated {tp.topic}"
    words = {
        Doing.NOT_REGISTERED: (
            f"broker {id_} is not registered: it was unregistered, or it has never started",
            f"start node {id_}: odradek start --config FILE",
        ),
        Doing.DOWN: (
            f"broker {id_} is down: nothing listens{at}",
            f"start node {id_}: odradek start --config FILE",
        ),
        Doing.UNREACHABLE: (f"broker {id_}{at} does not answer", look),
        Doing.RECOVERING: (f"broker {id_} is starting: it recovers its logs", f"{look}; {watch}"),
        Doing.FENCED: (
            f"broker {id_} is fenced: it is starting, or its heartbeats do not reach the controller",
            f"{look}; odradek cluster quorum",
        ),
        Doing.DISK: (
            f"a log directory of broker {id_} failed",
            f"odradek cluster logdirs --broker {id_}",
        ),
        Doing.NO_LEADER: (
            "the partition has no leader to fetch from",
            f"odradek topic describe {tp.topic}",
        ),
        Doing.TRUNCATING: (f"broker {id_} removes records that leader {leader} does not have", watch),
        Doing.FETCHING: (f"broker {id_} fetches what it lacks from leader {leader}", watch),
        Doing.STALLED: (
            f"broker {id_} does not fetch from leader {leader}: it is throttled, or cannot reach the leader",
            look,
        ),
        Doing.CAUGHT_UP: (
            f"broker {id_} has every record; leader {leader} or the controller has not let it in yet",
            f"{watch}; odradek cluster health",
        ),
        Doing.UNKNOWN: (
            f"broker {id_} or leader {leader} does not say how far its replica is",
            f"{look}; odradek cluster logdirs --partitions",
        ),
    }
    return words[doing]


def _falls_behind(tp: TopicPartition, broker: BrokerState, leader: int | None) -> tuple[str, str]:
    return (
        f"broker {broker.broker_id} fetches more slowly than leader {leader} is written to",
        f"odradek cluster config --broker {broker.broker_id} --all (num.replica.fetchers, throttled rates)",
    )
