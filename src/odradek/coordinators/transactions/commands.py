"""What a transaction shard is asked, and what it answers. Plain data, free of protocol versions."""

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
    """Who the producer was, where it goes on after an error."""
    keep_prepared: bool = False
    """Leave an open transaction open: its outcome is known elsewhere (KIP-939)."""
    connection: int
    """The number of the connection it came by: a later one has a larger number."""


class Initialized(NamedTuple):
    producer_id: int
    producer_epoch: int
    ongoing: ProducerIdAndEpoch = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    """Who wrote the transaction that was kept open."""


@plain()
class AddPartitions:
    """Answered by None; refused with one error for all."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: Sequence[TopicPartition]
    client_version: int
    connection: int | None
    """None where a broker asks for its client."""

    @property
    def is_long(self) -> bool:
        return len(self.partitions) > FEW_PARTITIONS


@plain()
class VerifyPartitions:
    """Answered by one error code per partition, in order."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: Sequence[TopicPartition]


@plain()
class EndTxn:
    """Answered by the ProducerIdAndEpoch that the producer goes on with.

    `is_acknowledged`: the connection has told this producer already that its last commit succeeded.
    """

    transactional_id: str
    producer: ProducerIdAndEpoch
    commit: bool
    client_version: int
    connection: int
    is_acknowledged: bool = False


@plain()
class MarkersWritten:
    """Every partition of a decided transaction has its marker, or is gone."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    """As the markers had it: whatever happened since makes this command void."""


@plain()
class DescribeTransaction:
    """Answered by the TransactionMetadata."""

    transactional_id: str


@plain()
class ListTransactions:
    """Answered by a list of TransactionMetadata."""

    states: frozenset[TxnState]
    producer_ids: frozenset[int]
    min_duration_ms: int
    pattern: "Pattern | None"
    is_long: ClassVar = True


@plain()
class ExpireIds:
    """Remove transactional ids that nobody has used for long. Answered by their number."""

    is_long: ClassVar = True


class WriteMarkers(NamedTuple):
    """An effect: what a decided transaction asks of the partitions it wrote to."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: tuple[TopicPartition, ...]
