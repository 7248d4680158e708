"""Markers for partitions of a broker that cannot be reached stay to be sent."""

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


def test_markers_go_to_the_broker_that_leads() -> None:
    writer: Any = Writer()
    channel = BrokerMarkers(HERE, writer)
    assert channel.deliver(HERE, MARKERS, [TP]).value == {TP: ErrorCode.NONE}
    assert channel.deliver(ELSEWHERE, MARKERS, [TP]).value == {TP: ErrorCode.BROKER_NOT_AVAILABLE}
