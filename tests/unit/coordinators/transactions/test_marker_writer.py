"""A coordinator writes markers itself where its own broker leads, and has the others write theirs."""

from typing import Any

from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.marker_writer import BrokerMarkers
from odradek.core.errors import ErrorCode
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.runtime.reply import Reply

HERE, ELSEWHERE = 1, 2
TP = TopicPartition("t", 0)
MARKERS = WriteMarkers("x", ProducerIdAndEpoch(7, 3), True, 0, 2, (TP,))


class Writer:
    def write(self, markers: WriteMarkers, partitions: list[TopicPartition], *, own: bool) -> Reply[Any]:
        assert own
        return Reply(dict.fromkeys(partitions, ErrorCode.NONE))


class Others:
    def deliver(self, broker_id: int, markers: WriteMarkers, partitions: list[TopicPartition]) -> Reply[Any]:
        assert broker_id == ELSEWHERE
        return Reply(dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER))


def test_markers_go_to_the_broker_that_leads() -> None:
    writer: Any = Writer()
    channel = BrokerMarkers(HERE, writer, Others())
    assert channel.deliver(HERE, MARKERS, [TP]).value == {TP: ErrorCode.NONE}
    assert channel.deliver(ELSEWHERE, MARKERS, [TP]).value == {TP: ErrorCode.NOT_LEADER_OR_FOLLOWER}
