"""A controller that makes itself a voter (`controller.quorum.auto.join.enable`). Its own side; pure.

An observer that follows a leader asks to be added, once in every period. While the voters have its id with
another directory, the disk that held that directory is gone: it asks to have that voter removed first. The
leader refuses a replica that lags, so one that is refused just asks again.
"""

from odradek.raft.messages import AddVoterRequest, RemoveVoterRequest
from odradek.raft.ready import Send
from odradek.raft.replica import Replica
from odradek.raft.roles import Observer


def must_join(r: Replica) -> bool:
    """kraft.version 0 has its voters from the configuration: nobody can join."""
    role = r.role
    if not (r.auto_join and isinstance(role, Observer) and r.has_leader and r.endpoints) or r.stopping:
        return False
    return r.voters is not None and r.history.last.kraft_version >= 1


def pump(r: Replica, now_ms: int) -> None:
    fetching = r.fetching
    if fetching.update_voter_ms > now_ms or not r.gate.settled or not must_join(r):
        return
    fetching.update_voter_ms = now_ms + r.times.update_voter_ms
    old = r.voter_key(r.node_id)
    request: AddVoterRequest | RemoveVoterRequest
    if old is not None:
        request = RemoveVoterRequest(old)
    else:
        request = AddVoterRequest(r.key, r.endpoints, r.times.request_timeout_ms, ack_when_committed=False)
    leader_id = r.role.leader_id
    r.gate.send(Send(leader_id, request, r.endpoints_of(leader_id)))
