"""ControllerResult: the records to append for a request, and the answer after they are committed. Pure.

A batch of the log is committed as a whole or not at all. It has at most 10,000 records, as in Kafka.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.records import MetadataRecord

MAX_RECORDS_PER_BATCH = 10_000
TOO_MANY_RECORDS = "Unable to perform excessively large batch operation."


class ControllerResult(NamedTuple):
    """`is_atomic`: a client must never see a part of it, so it must be one batch.

    The driver appends the `batches` one after the other and decides nothing in between: each one is staged,
    encoded, appended and taken before the next. The answer waits for the last offset of the last batch. If
    the controller loses its leadership in between, the log has the first batches, and the next controller
    continues from there.
    """

    records: list[MetadataRecord]
    response: Any
    is_atomic: bool = False

    def batches(self) -> Iterator[Sequence[MetadataRecord]]:
        """The records in batches; none without records."""
        count = len(self.records)
        assert not self.is_atomic or count <= MAX_RECORDS_PER_BATCH, f"{count} records cannot be one batch"
        return split(self.records)


def split(records: Sequence[MetadataRecord]) -> Iterator[Sequence[MetadataRecord]]:
    """Split records that need not be atomic, such as those that fence a broker, into batches."""
    for start in range(0, len(records), MAX_RECORDS_PER_BATCH):
        yield records[start : start + MAX_RECORDS_PER_BATCH]


def check_count(count: int) -> None:
    """Raise POLICY_VIOLATION, as Kafka does, if a request needs more records than fit into one batch."""
    if count > MAX_RECORDS_PER_BATCH:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY_RECORDS)
