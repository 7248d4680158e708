"""What handling a command gives: records to append, and the answer once they are committed. Pure.

A batch of the log is committed whole or not at all, and holds at most 10,000 records, as in Kafka.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.records import MetadataRecord

MAX_RECORDS_PER_BATCH = 10_000
TOO_MANY_RECORDS = "Unable to perform excessively large batch operation."


class ControllerResult(NamedTuple):
    """`is_atomic`: a client must never see a part of it, so that it has to be one batch.

    Whoever appends a result appends its `batches` one after the other and decides nothing in between: each
    is staged, encoded, appended and taken before the next. The answer waits for the last offset of the last.
    A controller that is deposed in between leaves a prefix, from which the next controller goes on.
    """

    records: list[MetadataRecord]
    response: Any
    is_atomic: bool = False

    def batches(self) -> Iterator[Sequence[MetadataRecord]]:
        """The records as they are appended; nothing where there are none."""
        count = len(self.records)
        assert not self.is_atomic or count <= MAX_RECORDS_PER_BATCH, f"{count} records cannot be one batch"
        return split(self.records)


def split(records: Sequence[MetadataRecord]) -> Iterator[Sequence[MetadataRecord]]:
    """Records that need not be atomic, such as those that fence a broker, as batches."""
    for start in range(0, len(records), MAX_RECORDS_PER_BATCH):
        yield records[start : start + MAX_RECORDS_PER_BATCH]


def check_count(count: int) -> None:
    """Raise POLICY_VIOLATION, as Kafka does, where a client asks for more records than fit in one batch."""
    if count > MAX_RECORDS_PER_BATCH:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY_RECORDS)
