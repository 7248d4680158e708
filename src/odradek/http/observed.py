"""What is read of a node over HTTP: its counters, its state, its health. Nothing is changed from here."""

from typing import Protocol

from odradek.broker.health import Health
from odradek.broker.quorum_side import QuorumSide
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.core.metrics import Metrics
from odradek.log.cleaning.cleaner import Cleaner
from odradek.log.manager import LogManager
from odradek.metadata.publisher import MetadataPublisher
from odradek.replication.manager import ReplicaManager
from odradek.runtime.api import Runtime


class Observed(Protocol):
    """A node. `quorum` is there once it is ready."""

    runtime: Runtime
    metrics: Metrics
    health: Health
    metadata: MetadataPublisher
    quorum: QuorumSide
    logs: LogManager
    cleaner: Cleaner
    replicas: ReplicaManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
