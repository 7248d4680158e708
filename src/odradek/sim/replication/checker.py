"""Checker: all partitions of a simulated cluster, held to the rules of replication. Pure.

It hears what the controller committed, what the replicas have, and what clients were answered.
"""

from collections.abc import Callable
from typing import TypeAlias
from uuid import UUID

from odradek.sim.replication import rules
from odradek.sim.replication.rules import Counters
from odradek.sim.replication.truth import PartitionTruth

PartitionId: TypeAlias = tuple[UUID, int]


class Checker:
    def __init__(self) -> None:
        self.violations: list[str] = []
        self.counters = Counters()
        self.truths: dict[PartitionId, PartitionTruth] = {}
        self.on_violation: Callable[[str], None] = lambda text: None
        self._broker_epochs: dict[int, int] = {}

    def fail(self, rule: str, details: str) -> None:
        self.violations.append(f"{rule}: {details}")
        self.on_violation(self.violations[-1])

    def add(
        self, partition_id: PartitionId, name: str, *, is_compacted: bool, is_flushed: bool
    ) -> PartitionTruth:
        assert partition_id not in self.truths
        truth = self.truths[partition_id] = PartitionTruth(
            name, self.fail, self.counters, is_compacted=is_compacted, is_flushed=is_flushed
        )
        return truth

    def remove(self, partition_id: PartitionId) -> None:
        self.truths.pop(partition_id, None)

    # --- nodes ----------------------------------------------------------------------------------------

    def power_lost(self, node: int) -> None:
        for truth in self.truths.values():
            truth.power_lost(node)

    def directory_lost(self, node: int) -> None:
        for truth in self.truths.values():
            truth.directory_lost(node)

    def broker_epoch(self, node: int, epoch: int) -> None:
        """The controller committed a registration."""
        before = self._broker_epochs.get(node, -1)
        if epoch < before:
            self.fail(rules.EPOCHS, f"broker {node} is registered with {epoch} after {before}")
        self._broker_epochs[node] = epoch
