"""Proposals of many partitions: what one request has, and what becomes of each. The test answers."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.replication.isr import CommittedIsr, PendingShrink
from odradek.replication.proposals import PROPOSED_AT_ONCE, IsrAnswer, IsrProposal, IsrProposals
from odradek.runtime.slices import at_once
from odradek.wire import responses

ORDERS, BILLS = UUID(int=1), UUID(int=2)


class Leader:
    """A leader that notes its answers. It sends again if it is made to."""

    def __init__(self, topic_id: UUID = ORDERS, index: int = 0) -> None:
        self.topic_id = topic_id
        self.index = index
        self.answers: list[IsrAnswer] = []
        self.is_stubborn = False
        self.proposal: IsrProposal | None = None

    def proposes(self, epoch: int = 0) -> IsrProposal:
        state = PendingShrink(CommittedIsr((1, 2)), (2,))
        tp = TopicPartition("t", self.index)
        self.proposal = IsrProposal(self, state, tp, self.topic_id, 7, epoch, ((1, -1), (3, 30)))
        return self.proposal

    def holds(self, proposal: IsrProposal) -> bool:
        return proposal is self.proposal

    def answered(self, proposal: IsrProposal, answer: IsrAnswer) -> bool:
        assert self.holds(proposal)
        self.answers.append(answer)
        if not self.is_stubborn:
            self.proposal = None
        return self.is_stubborn


def sent(proposals: IsrProposals) -> list[tuple[UUID, int]] | None:
    request = at_once(proposals.next_request(1, 10))
    if request is None:
        return None
    return [(topic.topic_id, row.partition_index) for topic in request.topics for row in topic.partitions]


def answer(keys: Iterable[tuple[UUID, int]], error: ErrorCode = ErrorCode.NONE) -> Any:
    types = responses.alter_partition
    topics = [
        types.TopicData(
            topic_id=topic_id,
            partitions=[
                types.PartitionData(
                    partition_index=index, error_code=error, leader_epoch=7, partition_epoch=5, isr=(1,)
                )
            ],
        )
        for topic_id, index in keys
    ]
    return types.AlterPartitionResponse(topics=topics)


def test_partitions_of_all_topics_share_one_request() -> None:
    proposals = IsrProposals()
    leaders = [Leader(ORDERS, 0), Leader(BILLS, 3), Leader(ORDERS, 2)]
    for leader in leaders:
        proposals.submit(leader.proposes())
    request = at_once(proposals.next_request(1, 10))
    assert request is not None and (request.broker_id, request.broker_epoch) == (1, 10)
    assert [(t.topic_id, [p.partition_index for p in t.partitions]) for t in request.topics] == [
        (ORDERS, [0, 2]),
        (BILLS, [3]),
    ]
    row = request.topics[0].partitions[0]
    states = [(state.broker_id, state.broker_epoch) for state in row.new_isr_with_epochs]
    assert states == [(1, 10), (3, 30)], "the own epoch is that of the registration"
    assert (row.leader_epoch, row.partition_epoch, list(row.new_isr)) == (7, 0, [1, 3])
    at_once(proposals.settle(answer([(BILLS, 3), (ORDERS, 2), (ORDERS, 0)])))
    assert [leader.answers for leader in leaders] == [[IsrAnswer(ErrorCode.NONE, 7, 5, (1,))]] * 3
    assert not proposals and not proposals.is_in_flight


def test_one_request_is_in_flight() -> None:
    proposals = IsrProposals()
    first, second = Leader(index=0), Leader(index=1)
    proposals.submit(first.proposes())
    assert sent(proposals) == [(ORDERS, 0)] and proposals.is_in_flight
    proposals.submit(second.proposes())
    with pytest.raises(AssertionError, match="one request at a time"):
        sent(proposals)
    at_once(proposals.settle(answer([(ORDERS, 0)])))
    assert second.answers == []
    assert sent(proposals) == [(ORDERS, 1)]


def test_the_last_proposal_of_a_partition_counts() -> None:
    """The metadata has made the leader drop the first. Its answer says nothing about the second."""
    proposals = IsrProposals()
    leader = Leader()
    proposals.submit(leader.proposes(epoch=0))
    sent(proposals)
    proposals.submit(leader.proposes(epoch=1))
    assert not at_once(proposals.settle(answer([(ORDERS, 0)])))
    assert leader.answers == []
    assert sent(proposals) == [(ORDERS, 0)]
    at_once(proposals.settle(answer([(ORDERS, 0)])))
    assert len(leader.answers) == 1


def test_a_dropped_proposal_is_neither_sent_nor_answered() -> None:
    proposals = IsrProposals()
    gone, stays = Leader(index=0), Leader(index=1)
    proposals.submit(gone.proposes())
    proposals.submit(stays.proposes())
    gone.proposal = None
    assert sent(proposals) == [(ORDERS, 1)]
    stays.proposal = None
    assert not at_once(proposals.settle(answer([(ORDERS, 1)])))
    assert stays.answers == [] and not proposals
    assert sent(proposals) is None and not proposals.is_in_flight


def test_what_a_leader_wants_to_send_again_is_sent_again() -> None:
    proposals = IsrProposals()
    leader = Leader()
    leader.is_stubborn = True
    proposals.submit(leader.proposes())
    sent(proposals)
    assert at_once(proposals.settle(answer([(ORDERS, 0)], ErrorCode.UNKNOWN_SERVER_ERROR)))
    assert sent(proposals) == [(ORDERS, 0)]


def test_a_partition_that_the_answer_lacks_is_sent_again() -> None:
    proposals = IsrProposals()
    leader = Leader()
    proposals.submit(leader.proposes())
    sent(proposals)
    assert at_once(proposals.settle(answer([(BILLS, 0)])))
    assert leader.answers == []
    assert sent(proposals) == [(ORDERS, 0)]


def test_a_request_that_failed_is_sent_again_with_what_came_since() -> None:
    proposals = IsrProposals()
    proposals.submit(Leader(index=0).proposes())
    sent(proposals)
    proposals.failed()
    proposals.submit(Leader(index=1).proposes())
    assert sent(proposals) == [(ORDERS, 0), (ORDERS, 1)]


def test_a_request_has_a_limit() -> None:
    proposals = IsrProposals()
    for index in range(PROPOSED_AT_ONCE + 1):
        proposals.submit(Leader(index=index).proposes())
    first = sent(proposals)
    assert first is not None and len(first) == PROPOSED_AT_ONCE
    at_once(proposals.settle(answer(first)))
    assert sent(proposals) == [(ORDERS, PROPOSED_AT_ONCE)]


def test_a_proposal_is_news() -> None:
    news: list[int] = []
    proposals = IsrProposals(lambda: news.append(len(proposals)))
    proposals.submit(Leader().proposes())
    assert news == [1]
