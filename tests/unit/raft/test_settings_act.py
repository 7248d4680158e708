"""Every `controller.quorum.*` key that is a time changes when the machine does something."""

from uuid import UUID

from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.raft import events as e
from odradek.raft import messages as m
from odradek.raft.control import QuorumFacts
from odradek.raft.log_state import LogView
from odradek.raft.node import RaftNode
from odradek.raft.quorum_state import QuorumState
from odradek.raft.ready import Ready
from odradek.raft.roles import Follower, Leader, Prospective, Role, Unattached
from odradek.raft.settings import raft_times
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet

VOTERS = VoterSet(Voter(n, UUID(int=n), (VoterEndpoint("C", "h", n),)) for n in (1, 2, 3))
KEYS = {n: ReplicaKey(n, UUID(int=n)) for n in (1, 2, 3, 4)}


class Machine:
    """Voter 1 of three, with the times of a configuration; draws the shortest of all random times."""

    def __init__(self, leader_id: int = -1, **settings: str) -> None:
        given = {f"controller.quorum.{name.replace('_', '.')}": value for name, value in settings.items()}
        config, _ = NodeConfig.from_sources({}, given)
        history = VoterHistory(None)
        history.reset(0, QuorumFacts(1, VOTERS))
        self.node = RaftNode(
            1,
            UUID(int=1),
            state=QuorumState(leader_id, 3),
            log=LogView(0, 5, 5, ((3, 0),)),
            history=history,
            times=raft_times(config),
            draw=lambda n: 0,
            endpoints=(VoterEndpoint("C", "h", 1),),
        )
        self.now_ms = 0
        self.step(e.Start())

    def step(self, event: e.Event) -> Ready:
        """What came out of it at last: disks are quick."""
        ready = self.node.step(event, self.now_ms)
        if ready.appends:
            self.node.step(e.Appended(self.node.log_end_offset), self.now_ms)
            self.node.step(e.Flushed(self.node.log_end_offset), self.now_ms)
        return ready if ready.persist is None else self.step(e.Persisted())

    def until(self, role: type[Role], limit_ms: int = 100_000) -> int:
        """When ticks alone bring it into a role."""
        while not isinstance(self.node.role, role):
            deadline = self.node.next_deadline_ms
            assert deadline is not None and deadline <= limit_ms
            self.now_ms = max(deadline, self.now_ms)
            self.step(e.Tick())
        return self.now_ms

    def lead(self) -> "Machine":
        self.until(Prospective)
        for pre_vote in (True, False):
            request = m.VoteRequest(self.node.epoch, KEYS[1], KEYS[2], 3, 5, pre_vote)
            self.step(e.Answered(2, request, m.VoteAnswer(ErrorCode.NONE, -1, self.node.epoch, granted=True)))
        assert isinstance(self.node.role, Leader)
        return self

    def fetched(self, key: ReplicaKey) -> None:
        """Somebody has all of this leader's log."""
        epoch, end = self.node.epoch, self.node.log_end_offset
        self.step(e.Received(object(), m.FetchRequest(key, epoch, end, epoch, 0)))


def test_fetch_timeout_ends_the_patience_with_a_leader() -> None:
    assert Machine(leader_id=2).until(Prospective) == 2000
    assert Machine(leader_id=2, fetch_timeout_ms="700").until(Prospective) == 700


def test_fetch_timeout_ends_the_term_of_a_leader_that_nobody_fetches_from() -> None:
    for text, expected_ms in (("2000", 3000), ("600", 900)):
        machine = Machine(fetch_timeout_ms=text).lead()
        began_ms = machine.now_ms
        while isinstance(machine.node.role, Leader):
            assert machine.node.next_deadline_ms is not None
            machine.now_ms = machine.node.next_deadline_ms
            machine.step(e.Tick())
        assert machine.now_ms - began_ms == expected_ms


def test_election_timeout_ends_a_round_of_questions() -> None:
    for text, expected_ms in (("1000", 1000), ("350", 350)):
        machine = Machine(election_timeout_ms=text)
        asked_ms = machine.until(Prospective)
        assert machine.until(Unattached) - asked_ms == expected_ms


def test_election_backoff_max_is_the_wait_of_the_last_successor() -> None:
    for text, expected_ms in (("1000", 1000), ("40", 40)):
        machine = Machine(leader_id=2, election_backoff_max_ms=text)
        assert isinstance(machine.node.role, Follower)
        machine.step(e.Received("t", m.EndQuorumEpochRequest(2, 3, (KEYS[3],))))
        assert machine.until(Prospective) == expected_ms


def test_retry_backoff_delays_the_request_after_one_that_failed() -> None:
    for text, expected_ms in (("20", 20), ("330", 330)):
        machine = Machine(leader_id=2, retry_backoff_ms=text)
        request = machine.node._r.fetching.in_flight
        assert request is not None
        assert not machine.step(e.Unanswered(2, request)).sends
        machine.now_ms = expected_ms - 1
        assert not machine.step(e.Tick()).sends
        machine.now_ms = expected_ms
        (send,) = machine.step(e.Tick()).sends
        assert isinstance(send.request, m.FetchRequest)


def test_request_timeout_ends_the_wait_for_a_new_voter() -> None:
    for text, expected_ms in (("2000", 2000), ("450", 450)):
        machine = Machine(request_timeout_ms=text).lead()
        machine.fetched(KEYS[2])
        began_ms = machine.now_ms
        request = m.AddVoterRequest(KEYS[4], (VoterEndpoint("C", "h", 4),), 60_000)
        (send,) = machine.step(e.Received("add", request)).sends
        assert isinstance(send.request, m.SupportedVersionsRequest)
        machine.now_ms = began_ms + expected_ms - 1
        machine.fetched(KEYS[2])
        assert not machine.step(e.Tick()).answers
        machine.now_ms += 1
        (answer,) = machine.step(e.Tick()).answers
        assert isinstance(answer.answer, m.VoterChangeAnswer)
        assert (answer.token, answer.answer.error) == ("add", ErrorCode.REQUEST_TIMED_OUT)
