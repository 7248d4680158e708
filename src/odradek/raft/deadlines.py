"""When a replica wants to be stepped next, and what it sends of its own accord."""

from collections.abc import Callable

from odradek.raft import elections, epoch_requests, following, joining, leading, upgrading
from odradek.raft.replica import Replica
from odradek.raft.roles import Candidate, Follower, Leader, Observer, Prospective, Resigned, Role, Unattached


def next_deadline_ms(r: Replica) -> int | None:
    lead = r.leadership
    if r.failed:
        return None
    if lead is not None:
        times = [] if lead.change is None else [lead.change.deadline_ms]
        if lead.parked:
            times.append(min(parked.deadline_ms for parked in lead.parked.values()))
        if r.others:
            times += (lead.check_quorum_ms, lead.begin_ms)
        return min(times) if times else None
    soonest = r.deadline_ms
    other: int | None
    if r.ballot is not None:
        other = r.ballot.next_ms
    elif isinstance(r.role, Resigned):
        other = min((at_ms for at_ms in r.resigning.values() if at_ms is not None), default=None)
    else:
        other = _next_fetch_ms(r)
    return soonest if other is None else other if soonest is None else min(soonest, other)


def _next_fetch_ms(r: Replica) -> int | None:
    fetching = r.fetching
    waits = fetching.in_flight is None and following.may_fetch(r) and following.can_ask(r)
    has_to_tell = upgrading.must_update(r) or joining.must_join(r)
    if waits and has_to_tell:
        return min(fetching.retry_ms, fetching.update_voter_ms)
    if has_to_tell:
        return fetching.update_voter_ms
    return fetching.retry_ms if waits else None


# --- what may be sent now -------------------------------------------------------------------------------


def _pump_follower(r: Replica, now_ms: int) -> None:
    following.pump(r, now_ms)
    upgrading.pump(r, now_ms)


def _pump_observer(r: Replica, now_ms: int) -> None:
    following.pump(r, now_ms)
    joining.pump(r, now_ms)


def _pump_leader(r: Replica, now_ms: int) -> None:
    assert r.leadership is not None
    leading.announce(r, r.leadership, now_ms)


PUMPS: dict[type[Role], Callable[[Replica, int], None]] = {
    Unattached: following.pump,
    Prospective: elections.ask,
    Candidate: elections.ask,
    Follower: _pump_follower,
    Leader: _pump_leader,
    Resigned: epoch_requests.tell_resigned,
    Observer: _pump_observer,
}
