"""The two ways between the coordinator of a transaction and the brokers that lead its partitions.

Each has a side on this node, and one over the wire: remote_markers.py, remote_coordinators.py. A channel
carries; its users decide.
"""

from typing import Protocol

from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.markers import Outcomes
from odradek.core.errors import ErrorCode
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.runtime.reply import Reply


class MarkerChannel(Protocol):
    """From a coordinator to the leaders of partitions."""

    def deliver(
        self, broker_id: int, markers: WriteMarkers, partitions: list[TopicPartition]
    ) -> Reply[Outcomes]:
        """Have a broker write markers: one outcome for each partition, once the markers are committed.

        A broker that cannot be reached is an outcome too: the sender of markers tries again.
        """
        ...


class TransactionChannel(Protocol):
    """From a leader of partitions to the coordinator of a transactional id."""

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: list[TopicPartition],
        client_version: int,
    ) -> Reply[ErrorCode]:
        """NONE, once the transaction has them. A refusal is the reply's error."""
        ...

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> Reply[list[ErrorCode]]:
        """Whether the transaction has them, partition by partition."""
        ...
