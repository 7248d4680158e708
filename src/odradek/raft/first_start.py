"""Whether a static voter with an empty disk may vote, and when. Pure: asking and writing are the driver's.

Such a voter may be new, or its disk may have been wiped with records and votes on it. It asks every other
voter, in this incarnation, whether it is formatted and which epoch it has (`decide`).

    none has seen an epoch      the quorum is new: format the directory, then wait until every voter has done
                                so or one of them has seen an epoch (`may_start`)
    one has                     take the highest epoch as one in which this voter has voted already. It votes
                                again when it has caught up with a leader of at least that epoch, so a wiped
                                disk never helps to elect a leader without committed records

A new quorum votes only after all have formatted: one that comes late would find an epoch and take itself for
wiped, and with too many of those nobody could be elected. The lowest id chooses the id of the cluster
(`choose_cluster_id`).
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class FormatAnswer(NamedTuple):
    """What a voter says of itself. One that does not know the question counts as formatted; its epoch comes
    from its answer to a Fetch request. It names no cluster then (empty)."""

    formatted: bool
    epoch: int
    cluster_id: str = ""


class ClusterIdError(ValueError):
    """The voters belong to different clusters; says which."""


class Wait(NamedTuple):
    """For voters that have not answered, or have not formatted yet."""

    voters: tuple[int, ...]


class Format(NamedTuple):
    """Write down that the directory is formatted, this epoch, and whether this voter may vote."""

    epoch: int
    may_vote: bool


def decide(node_id: int, voters: Collection[int], answers: Mapping[int, FormatAnswer]) -> Wait | Format:
    """For a voter that is not formatted."""
    missing = tuple(n for n in voters if n != node_id and n not in answers)
    if missing:
        return Wait(missing)
    epoch = max((answer.epoch for answer in answers.values() if answer.formatted), default=0)
    return Format(epoch, may_vote=epoch == 0)


def choose_cluster_id(
    node_id: int, voters: Collection[int], answers: Mapping[int, FormatAnswer]
) -> str | Wait | None:
    """The cluster that the formatted voters belong to; None: this voter chooses. Wait for those that are
    formatted and do not say it: Apache's controllers do so when they have a leader. ClusterIdError where they
    belong to different ones."""
    formatted = {n: answer.cluster_id for n, answer in sorted(answers.items()) if answer.formatted}
    named = {cluster_id: n for n, cluster_id in formatted.items() if cluster_id}
    if len(named) > 1:
        told = ", ".join(f"{n} of {cluster_id}" for cluster_id, n in named.items())
        raise ClusterIdError(f"the voters belong to different clusters: voter {told}")
    if named:
        return next(iter(named))
    if formatted:
        return Wait(tuple(formatted))
    first = min(voters)
    return None if node_id == first else Wait((first,))


def may_start(node_id: int, voters: Collection[int], answers: Mapping[int, FormatAnswer]) -> Wait | None:
    """For a voter that formatted itself as new and has seen no epoch. None: start, and vote."""
    if any(answer.epoch > 0 for answer in answers.values()):
        return None
    late = tuple(n for n in voters if n != node_id and not (n in answers and answers[n].formatted))
    return Wait(late) if late else None
