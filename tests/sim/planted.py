"""Faults planted into the quorum's machine, one rule broken each. The simulation must catch all of them.

`python -m tests.sim.planted` searches for the first seed that catches each; CI plays the seeds in CAUGHT. A
change of the machine or of the story tells other stories: then search again.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from odradek.raft import elections, first_start, following, leading
from odradek.raft.first_start import Format, FormatAnswer, Wait
from odradek.raft.gate import Gate
from odradek.raft.leadership import Leadership
from odradek.raft.messages import VoteAnswer, VoteRequest
from odradek.raft.quorum import majority
from odradek.raft.ready import Answer, Send
from odradek.raft.replica import Replica
from odradek.sim.quorum import checks
from odradek.sim.quorum.story import play

Planted = tuple[tuple[object, str, Callable[..., object]], ...]
_put, _decide = Gate._put, first_start.decide


def _put_votes_at_once(gate: Gate, item: Send | Answer) -> None:
    if isinstance(item, Answer) and isinstance(item.answer, VoteAnswer):
        gate._answers.append(item)
        gate.touch()
    else:
        _put(gate, item)


def _longer(r: Replica, request: VoteRequest) -> bool:
    return request.last_offset >= r.log.end_offset


def _with_observers(r: Replica, lead: Leadership) -> int:
    assert r.voters is not None
    ends = [state.end_offset for n, state in lead.voters.items() if n != r.node_id]
    ends += [state.end_offset for state in lead.observers.values()]
    ends += [r.log.flushed_offset]
    needed = majority(len(r.voters.ids))
    return sorted(ends, reverse=True)[needed - 1] if len(ends) >= needed else -1


def _unflushed(r: Replica) -> bool:
    return r.gate.settled and not r.stopping


def _never_lost(r: Replica, lead: Leadership, now_ms: int) -> bool:
    lead.check_quorum_ms = now_ms + 1000
    return False


def _votes_at_once(
    node_id: int, voters: Collection[int], answers: Mapping[int, FormatAnswer]
) -> Wait | Format:
    return Format(0, may_vote=True)


def _votes_when_caught_up(
    node_id: int, voters: Collection[int], answers: Mapping[int, FormatAnswer]
) -> Wait | Format:
    """It does not ask everybody for the highest epoch: any leader's high watermark will do."""
    if any(answer.epoch for answer in answers.values()):
        return Format(0, may_vote=False)
    return _decide(node_id, voters, answers)


def _votes_when_most_are_unformatted(
    node_id: int, voters: Collection[int], answers: Mapping[int, FormatAnswer]
) -> Wait | Format:
    unformatted = 1 + sum(not answer.formatted for answer in answers.values())
    if unformatted >= majority(len(voters)):
        return Format(0, may_vote=True)
    return _decide(node_id, voters, answers)


PLANTED: dict[str, Planted] = {
    "two votes in an epoch": ((elections, "voted_for", lambda voted, candidate: True),),
    "vote before fsync": ((Gate, "_put", _put_votes_at_once),),
    "logs compared by length only": ((elections, "log_is_up_to_date", _longer),),
    "an observer counted": ((leading, "majority_offset", _with_observers),),
    "unflushed offset fetched": ((following, "may_fetch", _unflushed),),
    "no check-quorum": ((leading, "lost_the_quorum", _never_lost),),
    "half a snapshot taken": ((following, "is_whole", lambda download, answer: True),),
    "a wiped voter votes": ((first_start, "decide", _votes_at_once),),
    "committed without a record of the own epoch": ((leading, "is_own_epoch", lambda role, offset: True),),
    "vote when caught up": ((first_start, "decide", _votes_when_caught_up),),
    "vote when most are unformatted": (
        (first_start, "decide", _votes_when_most_are_unformatted),
        (first_start, "may_start", lambda node_id, voters, answers: None),
    ),
}


@contextmanager
def planted(fault: str) -> Iterator[None]:
    with ExitStack() as stack:
        for target, name, broken in PLANTED[fault]:
            stack.enter_context(patch.object(target, name, broken))
        yield


SEARCHED = 200

# The seed that catches each fault, and the rule that it breaks there.
CAUGHT: dict[str, tuple[int, str]] = {
    "two votes in an epoch": (1, checks.ONE_VOTE),
    "vote before fsync": (0, checks.DURABLE_VOTE),
    "logs compared by length only": (7, checks.NEVER_LOST),
    "an observer counted": (11, checks.NEVER_LOST),
    "unflushed offset fetched": (0, checks.ACKNOWLEDGED),
    "no check-quorum": (14, checks.QUORUM_HEARD),
    "half a snapshot taken": (3, checks.EQUAL_PREFIXES),
    "a wiped voter votes": (3, checks.WIPED),
    "committed without a record of the own epoch": (0, checks.OWN_EPOCH),
    "vote when caught up": (49, checks.WIPED),
    "vote when most are unformatted": (127, checks.WIPED),
}


def search(fault: str) -> tuple[int, str] | None:
    """The first seed that catches a fault, and what is violated."""
    with planted(fault):
        for seed in range(SEARCHED):
            violation = play(seed).violation
            if violation is not None and not violation.startswith((checks.ASSERTION, checks.LIVENESS)):
                return seed, violation
    return None


if __name__ == "__main__":
    found = {fault: search(fault) for fault in PLANTED}
    for fault, catch in found.items():
        print(f"{fault}: {'not caught' if catch is None else f'seed {catch[0]}: {catch[1]}'}")
    sys.exit(0 if all(found.values()) else 3)
