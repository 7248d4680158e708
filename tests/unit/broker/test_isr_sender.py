"""How proposals reach the controller, on virtual time. The channel is the test's."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.broker.isr_sender import RETRY_S, IsrSender
from odradek.core.errors import ErrorCode, KafkaError
from odradek.replication.proposals import IsrProposals
from odradek.runtime.slices import Slices
from odradek.sim.world.loop import SimLoop
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey
from tests.unit.replication.test_proposals import ORDERS, Leader, answer

BROKER_EPOCH = 10


class Channel:
    """Takes requests, and answers each when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, list[int]]] = []
        self._answers: list[asyncio.Future[Any]] = []

    async def call(self, api_key: ApiKey, request: Any, requester: Any = None) -> Any:
        assert api_key is ApiKey.ALTER_PARTITION and request.broker_epoch == BROKER_EPOCH
        loop = asyncio.get_running_loop()
        indexes = [row.partition_index for topic in request.topics for row in topic.partitions]
        self.sent.append((round(loop.time(), 2), indexes))  # each turn of the loop takes some time
        self._answers.append(loop.create_future())
        return await self._answers[-1]

    def answers(self, response: Any) -> None:
        self._answers[-1].set_result(response)

    def fails(self, code: ErrorCode) -> None:
        self._answers[-1].set_exception(KafkaError(code))


Story = Callable[[IsrProposals, Channel], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    proposals, channel = IsrProposals(), Channel()
    sender = IsrSender(1, proposals, Slices())

    async def main() -> None:
        running = asyncio.ensure_future(sender.run(channel, BROKER_EPOCH))
        await story(proposals, channel)
        assert not running.done()
        running.cancel()

    loop = SimLoop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_proposals_of_one_turn_share_a_request_and_later_ones_wait_for_its_answer() -> None:
    async def story(proposals: IsrProposals, channel: Channel) -> None:
        leaders = [Leader(index=index) for index in range(3)]
        proposals.submit(leaders[0].proposes())
        proposals.submit(leaders[1].proposes())
        await settle()
        proposals.submit(leaders[2].proposes())
        await asyncio.sleep(3_600)
        assert channel.sent == [(0, [0, 1])], "it is not given up"
        channel.answers(answer([(ORDERS, 0), (ORDERS, 1)]))
        await settle()
        assert channel.sent[1:] == [(3_600, [2])], "at once"
        assert [len(leader.answers) for leader in leaders] == [1, 1, 0]

    play(story)


@pytest.mark.parametrize(
    ("code", "level"),
    [
        (ErrorCode.STALE_BROKER_EPOCH, logging.WARNING),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, logging.ERROR),
        (ErrorCode.UNKNOWN_SERVER_ERROR, logging.WARNING),
    ],
)
@pytest.mark.parametrize("is_raised", [False, True], ids=["answered", "raised"])
def test_a_request_that_was_refused_is_tried_again_after_a_pause(
    code: ErrorCode, level: int, is_raised: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(proposals: IsrProposals, channel: Channel) -> None:
        leader = Leader()
        proposals.submit(leader.proposes())
        await settle()
        for _ in range(2):
            if is_raised:
                channel.fails(code)
            else:
                channel.answers(responses.alter_partition.AlterPartitionResponse(error_code=code))
            await asyncio.sleep(RETRY_S)
            await settle()
        assert [time for time, _ in channel.sent] == pytest.approx([0, RETRY_S, 2 * RETRY_S])
        assert leader.answers == []
        channel.answers(answer([(ORDERS, 0)]))
        await settle()
        assert len(leader.answers) == 1

    play(story)
    assert [record.levelno for record in caplog.records] == [level] * 2


def test_a_proposal_that_its_leader_sends_again_waits_and_takes_others_along() -> None:
    async def story(proposals: IsrProposals, channel: Channel) -> None:
        stubborn, other = Leader(index=0), Leader(index=1)
        stubborn.is_stubborn = True
        proposals.submit(stubborn.proposes())
        await settle()
        channel.answers(answer([(ORDERS, 0)], ErrorCode.NOT_CONTROLLER))
        await settle()
        proposals.submit(other.proposes())
        await settle()
        assert len(channel.sent) == 1
        await asyncio.sleep(RETRY_S)
        await settle()
        assert channel.sent[1][1] == [0, 1]
        assert channel.sent[1][0] == pytest.approx(RETRY_S)

    play(story)


def test_a_change_that_the_metadata_has_overtaken_is_not_tried_again() -> None:
    async def story(proposals: IsrProposals, channel: Channel) -> None:
        leader = Leader()
        proposals.submit(leader.proposes())
        await settle()
        leader.proposal = None
        channel.fails(ErrorCode.REQUEST_TIMED_OUT)
        await asyncio.sleep(60)
        assert len(channel.sent) == 1 and not proposals

    play(story)
