"""The commands of a transaction shard, and its answers. Plain data, independent of protocol versions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from odradek.coordinators.plain import plain
from odradek.coordinators.transactions.metadata import FEW_PARTITIONS
from odradek.coordinators.transactions.states import TxnState
from odradek.core.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch, TopicPartition

if TYPE_CHECKING:
    from odradek.libraries.re2 import Pattern


@plain(kw_only=True)
class InitProducerId:
    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None
    """The producer's last identity, if it continues after an error."""
    keep_prepared: bool = False
    """Keep an open transaction open: an external coordinator knows its outcome (KIP-939)."""
    connection: int
    """The number of the client's connection. Later connections have larger numbers."""


class Initialized(NamedTuple):
    producer_id: int
    producer_epoch: int
    ongoing: ProducerIdAndEpoch = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    """The identity that wrote the transaction that was kept open."""


@plain()
class AddPartitions:
    """The answer is ErrorCode.NONE, or one error for all partitions."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: Sequence[TopicPartition]
    client_version: int
    connection: int | None
    """None if a broker sends this on behalf of its client."""

    @property
    def is_long(self) -> bool:
        return len(self.partitions) > FEW_PARTITIONS


@plain()
class VerifyPartitions:
    """The answer is one error code per partition, in order."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: Sequence[TopicPartition]


@plain()
class EndTxn:
    """The answer is the ProducerIdAndEpoch that the producer uses next.

    `is_acknowledged`: this connection has already answered that the producer's last commit succeeded.
    """

    transactional_id: str
    producer: ProducerIdAndEpoch
    commit: bool
    client_version: int
    connection: int
    is_acknowledged: bool = False


@plain()
class MarkersWritten:
    """Every partition of a decided transaction has its marker, or no longer exists."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    """The identity in the markers. If the transaction has changed since, this command has no effect."""


@plain()
class DescribeTransaction:
    """The answer is the TransactionMetadata."""

    transactional_id: str


@plain()
class ListTransactions:
    """The answer is a list of TransactionMetadata."""

    states: frozenset[TxnState]
    producer_ids: frozenset[int]
    min_duration_ms: int
    pattern: "Pattern | None"
    is_long: ClassVar = True


@plain()
class ExpireIds:
    """Remove transactional ids that were not used for a long time. The answer is their number."""

    is_long: ClassVar = True


class WriteMarkers(NamedTuple):
    """An effect: write the markers of a decided transaction to its partitions."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: tuple[TopicPartition, ...]
