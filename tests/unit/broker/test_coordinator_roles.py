"""Coordinators follow the leadership of their topics, and of no others."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.coordinator_roles import CoordinatorRoles
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition


class Coordinator:
    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def on_elected(self, index: int, log: Any) -> None:
        assert log is not None
        self.heard.append(("elected", index))

    def on_resigned(self, index: int) -> None:
        self.heard.append(("resigned", index))


@pytest.mark.parametrize(
    ("topic", "of_groups", "of_transactions"),
    [
        (GROUP_METADATA_TOPIC, True, False),
        (TRANSACTION_STATE_TOPIC, False, True),
        ("t", False, False),
    ],
)
def test_each_coordinator_hears_of_its_own_topic(topic: str, of_groups: bool, of_transactions: bool) -> None:
    groups, transactions = Coordinator(), Coordinator()
    of: Any = (groups, transactions)
    roles = CoordinatorRoles(*of)
    leader = SimpleNamespace(epoch=5)
    partition: Any = SimpleNamespace(topic_partition=TopicPartition(topic, 3), require_leader=lambda: leader)
    roles.elected(partition)
    roles.resigned(TopicPartition(topic, 3))
    all_of_it = [("elected", 3), ("resigned", 3)]
    assert groups.heard == (all_of_it if of_groups else [])
    assert transactions.heard == (all_of_it if of_transactions else [])
