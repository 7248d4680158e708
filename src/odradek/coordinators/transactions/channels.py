"""Protocols of the two channels between a transaction coordinator and the leaders of partitions.

Each has a local side and one over the wire: remote_markers.py, remote_coordinators.py. A channel only
delivers requests and answers. Its users decide.
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
        """Let a broker write markers. Returns one outcome per partition, after the markers are committed.

        An unreachable broker is an outcome too: the sender of markers retries.
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
        """NONE when the partitions are part of the transaction. A refusal is the reply's error."""
        ...

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> Reply[list[ErrorCode]]:
        """One error code per partition: NONE if it is part of the transaction."""
        ...
