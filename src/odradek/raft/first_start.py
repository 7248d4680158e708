"""Whether a static voter with an empty disk may vote. Pure: asking and writing are the driver's.

Such a voter may be new, or its disk may have been wiped with records and votes on it. It asks every other
voter, in this incarnation, how far that one is. Only if none has seen an epoch is the quorum new, and may begin.
Else the voter takes the highest epoch as one in which it has voted already, and votes again after it has caught
up with a leader of at least that epoch: so a wiped disk never helps to elect a leader without committed records.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class FormatAnswer(NamedTuple):
    """What a voter says of itself. No answer to the question itself means formatted, in an unknown epoch."""

    formatted: bool
    epoch: int


class Wait(NamedTuple):
    """Voters that have not answered."""

    voters: tuple[int, ...]


class Begin(NamedTuple):
    """Write down that the directory is formatted, this epoch, and whether this voter may vote; then start."""

    epoch: int
    may_vote: bool


def decide(node_id: int, voters: Collection[int], answers: Mapping[int, FormatAnswer]) -> Wait | Begin:
    missing = tuple(n for n in voters if n != node_id and n not in answers)
    if missing:
        return Wait(missing)
    epoch = max((answer.epoch for answer in answers.values() if answer.formatted), default=0)
    return Begin(epoch, may_vote=epoch == 0)
