"""Which partitions have a problem, as kafka-topics means it, and what is known of lags."""

import pytest

from odradek.cli.requests.cluster_access import PartitionInfo
from odradek.cli.requests.replication import Judged, LogEnds
from odradek.core.types import TopicPartition

TP = TopicPartition("orders", 0)


def judged(leader: int | None, isr: list[int], *, adding: int = 0, is_alive: bool = True) -> Judged:
    """Of three replicas; min.insync.replicas is 2."""
    return Judged(TP, PartitionInfo(0, leader, 4, [1, 2, 3], isr, []), 2, adding, is_alive)


@pytest.mark.parametrize(
    ("partition", "problems"),
    [
        (judged(1, [1, 2, 3]), ""),
        (judged(1, [1, 2]), "under_replicated at_min_isr"),
        (judged(1, [1]), "under_replicated under_min_isr"),
        (judged(None, [1, 2, 3]), "under_min_isr offline"),
        (judged(None, [1, 2]), "under_replicated under_min_isr at_min_isr offline"),
        (judged(1, [1, 2, 3], is_alive=False), "offline"),
        (judged(1, [1, 2], adding=1), "at_min_isr"),
    ],
)
def test_problems_are_those_of_kafka_topics(partition: Judged, problems: str) -> None:
    """A replica that a reassignment adds is not missed; a partition without a leader is under min ISR."""
    found = [
        name
        for name in ("under_replicated", "under_min_isr", "at_min_isr", "offline")
        if getattr(partition, f"is_{name}")
    ]
    assert found == problems.split()


def test_a_lag_is_known_if_both_ends_are() -> None:
    ends = LogEnds({(TP, 1): 10, (TP, 2): 4, (TP, 3): 12}, {})
    assert [ends.lag(TP, replica, 1) for replica in (1, 2, 3, 4)] == [0, 6, 0, None]
    assert ends.lag(TP, 2, None) is None
    assert ends.lag(TP, 2, 5) is None
