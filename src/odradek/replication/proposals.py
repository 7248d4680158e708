"""IsrProposals: the ISRs that this node's leaders propose to the controller (AlterPartition). Pure.

All partitions share one request at a time. A partition has at most one proposal, the last. It is sent until
it has an answer, or until its leader has dropped it, because the metadata was faster. What an answer means
for the partition is its leader's. broker/isr_sender.py sends the requests.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.metadata.image import RECOVERED
from odradek.replication.isr import PendingIsr
from odradek.runtime.slices import STEP, Paced
from odradek.wire import requests

if TYPE_CHECKING:
    from odradek.wire.requests.alter_partition import AlterPartitionRequest, PartitionData, TopicData
    from odradek.wire.responses.alter_partition import AlterPartitionResponse

_log = logging.getLogger(__name__)

PROPOSED_AT_ONCE: Final = 500

NOT_APPLIED: Final = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED))
"""The controller knows the proposal's partition epoch, and has not applied it: the ISR is what it was."""

WAIT_FOR_METADATA: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)
"""The controller knows of a newer change, perhaps of this one. The proposal stands until the metadata shows
it. All other errors may pass: the proposal is sent again."""


class IsrAnswer(NamedTuple):
    """The controller's answer for one partition. The other fields mean something without an error only."""

    error: ErrorCode
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()


class Proposer(Protocol):
    """The leader of a partition, at one leader epoch."""

    def holds(self, proposal: "IsrProposal") -> bool:
        """Whether it still waits for the answer."""
        ...

    def answered(self, proposal: "IsrProposal", answer: IsrAnswer) -> bool:
        """Take the answer. Returns whether to send the proposal again."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class IsrProposal:
    """One change of one partition's ISR. `broker_epochs` are those of the last fetches."""

    proposer: Proposer
    state: PendingIsr
    topic_partition: TopicPartition
    topic_id: UUID
    leader_epoch: int
    partition_epoch: int
    broker_epochs: tuple[tuple[int, int], ...]

    @property
    def key(self) -> tuple[UUID, int]:
        return self.topic_id, self.topic_partition.partition


class IsrProposals:
    """Call `next_request`, send it, then call `settle` with the answer, or `failed`."""

    def __init__(self, on_news: Callable[[], None] = lambda: None) -> None:
        self.on_news = on_news
        self._waiting: dict[tuple[UUID, int], IsrProposal] = {}
        self._sent: dict[tuple[UUID, int], IsrProposal] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_in_flight(self) -> bool:
        return self._sent is not None

    def submit(self, proposal: IsrProposal) -> None:
        """Propose. An earlier proposal of the partition is dropped, sent or not."""
        assert proposal.proposer.holds(proposal)
        self._waiting[proposal.key] = proposal
        self.on_news()

    def next_request(self, broker_id: int, broker_epoch: int) -> "Paced[AlterPartitionRequest | None]":
        """The next request, or None if nothing is proposed. This broker's epoch is that of its
        registration."""
        assert self._sent is None, "one request at a time"
        self._sent = sent = {}
        types = requests.alter_partition
        topics: dict[UUID, list[PartitionData]] = {}
        for key, proposal in list(islice(self._waiting.items(), PROPOSED_AT_ONCE)):
            if self._waiting.get(key) is not proposal:
                continue
            if not proposal.proposer.holds(proposal):
                del self._waiting[key]
                continue
            sent[key] = proposal
            states = [
                types.BrokerState(broker_id=id_, broker_epoch=broker_epoch if id_ == broker_id else epoch)
                for id_, epoch in proposal.broker_epochs
            ]
            topics.setdefault(proposal.topic_id, []).append(
                types.PartitionData(
                    partition_index=key[1],
                    leader_epoch=proposal.leader_epoch,
                    new_isr=[id_ for id_, _ in proposal.broker_epochs],
                    new_isr_with_epochs=states,
                    leader_recovery_state=RECOVERED,
                    partition_epoch=proposal.partition_epoch,
                )
            )
            yield STEP
        if not sent:
            self._sent = None
            return None
        rows: list[TopicData] = [
            types.TopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ]
        return types.AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=rows)

    def failed(self) -> None:
        """The request was refused as a whole, or has no answer: it is sent again."""
        assert self._sent is not None
        self._sent = None

    def settle(self, response: "AlterPartitionResponse") -> Paced[bool]:
        """Give every answer to its leader. Returns whether a proposal of the request is to be sent again.

        An answer is ignored if its leader has dropped the proposal or made another one.
        """
        sent = self._sent
        assert sent is not None and not response.error_code
        is_again = False
        for topic in response.topics:
            for row in topic.partitions:
                proposal = sent.pop((topic.topic_id, row.partition_index), None)
                if proposal is not None and self._waiting.get(proposal.key) is proposal:
                    del self._waiting[proposal.key]
                    answer = IsrAnswer(
                        ErrorCode(row.error_code), row.leader_epoch, row.partition_epoch, tuple(row.isr)
                    )
                    if proposal.proposer.holds(proposal) and proposal.proposer.answered(proposal, answer):
                        self._waiting.setdefault(proposal.key, proposal)
                        is_again = True
                yield 2 * STEP
        for proposal in sent.values():
            _log.warning("The controller's answer lacks %s, which is sent again", proposal.topic_partition)
            is_again = True
        self._sent = None
        return is_again
