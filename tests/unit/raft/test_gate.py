"""Nothing leaves before what it rests on is durable, and there is one write at a time."""

import pytest

from odradek.core.errors import ErrorCode
from odradek.raft.gate import Gate
from odradek.raft.messages import EpochAnswer, FetchRequest
from odradek.raft.quorum_state import QuorumState
from odradek.raft.ready import NOTHING, Answer, Ready, Send
from odradek.raft.voters import ReplicaKey

FIRST, SECOND = QuorumState(leader_epoch=1), QuorumState(leader_epoch=2)
SEND = Send(2, FetchRequest(ReplicaKey(1), 1, 0, 0, 500))
ANSWER = Answer("a", EpochAnswer(ErrorCode.NONE, 2, 1))


def test_what_rests_on_nothing_new_leaves_at_once() -> None:
    gate = Gate(QuorumState())
    assert gate.take() is NOTHING
    gate.send(SEND)
    gate.answer(ANSWER)
    assert gate.take() == Ready(sends=(SEND,), answers=(ANSWER,))
    assert gate.take() is NOTHING


def test_what_rests_on_a_write_waits_for_it() -> None:
    gate = Gate(QuorumState())
    gate.want(FIRST)
    gate.answer(ANSWER)
    gate.send(SEND)
    assert gate.take() == Ready(persist=FIRST)
    assert gate.take() is NOTHING
    gate.persisted()
    assert gate.settled
    assert gate.take() == Ready(sends=(SEND,), answers=(ANSWER,))


def test_a_change_during_a_write_is_the_next_write() -> None:
    gate = Gate(QuorumState())
    gate.want(FIRST)
    gate.answer(ANSWER)
    assert gate.take().persist == FIRST
    gate.want(SECOND)
    later = Answer("b", ANSWER.answer)
    gate.answer(later)
    assert gate.take().persist is None
    gate.persisted()
    assert not gate.settled
    assert gate.take() == Ready(persist=SECOND, answers=(ANSWER,))
    gate.persisted()
    assert gate.take() == Ready(answers=(later,))


def test_requests_of_a_role_that_ended_are_dropped_and_answers_are_owed() -> None:
    gate = Gate(QuorumState())
    gate.want(FIRST)
    gate.send(SEND)
    gate.answer(ANSWER)
    gate.take()
    gate.drop_sends()
    gate.persisted()
    assert gate.take() == Ready(answers=(ANSWER,))


def test_an_epoch_never_goes_back() -> None:
    gate = Gate(SECOND)
    with pytest.raises(AssertionError):
        gate.want(FIRST)


def test_nothing_is_durable_that_was_not_being_written() -> None:
    with pytest.raises(AssertionError):
        Gate(QuorumState()).persisted()
