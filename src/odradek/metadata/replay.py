"""Replayer: turns the batches of the metadata log into images and deltas. Pure.

Each batch of records becomes one `MetadataDelta`. Records of a metadata transaction take effect together at
its end. draft.py applies single records.
"""

from collections.abc import Iterable
from typing import NamedTuple

from odradek.metadata.delta import MetadataDelta
from odradek.metadata.draft import ImageDraft, ReplayError
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from odradek.runtime.slices import Paced, at_once

_RECORDS_PER_STEP = 16
_STEP_CALLS = 10 * _RECORDS_PER_STEP


class StagedDelta(NamedTuple):
    """The effect of a batch that is not in the log yet."""

    delta: MetadataDelta
    transaction: list[MetadataRecord] | None


class Replayer:
    """Has the newest image, and turns each further batch into a delta."""

    __slots__ = ("_transaction", "image")

    def __init__(self, image: MetadataImage = EMPTY_IMAGE) -> None:
        self.image = image
        self._transaction: list[MetadataRecord] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def copy(self) -> "Replayer":
        """A copy at the same offset. It shares the images, which are immutable."""
        copy = Replayer(self.image)
        copy._transaction = None if self._transaction is None else list(self._transaction)
        return copy

    def apply(
        self, records: Iterable[MetadataRecord], *, last_offset: int, epoch: int, timestamp_ms: int
    ) -> MetadataDelta:
        """Replay one batch that ends at `last_offset`. The image changes only if all records apply."""
        return self.take(
            at_once(self.stage(records, last_offset=last_offset, epoch=epoch, timestamp_ms=timestamp_ms))
        )

    def take(self, staged: StagedDelta) -> MetadataDelta:
        """Apply a staged delta. The image must be the one that it was staged on."""
        assert staged.delta.previous is self.image, "something was replayed since this was staged"
        self._transaction = staged.transaction
        self.image = staged.delta.image
        return staged.delta

    def stage(
        self, records: Iterable[MetadataRecord], *, last_offset: int, epoch: int, timestamp_ms: int
    ) -> Paced[StagedDelta]:
        """Compute the effect of a batch without applying it. Raises ReplayError."""
        draft = ImageDraft(self.image)
        pending = None if self._transaction is None else list(self._transaction)
        for i, record in enumerate(records):
            if i % _RECORDS_PER_STEP == _RECORDS_PER_STEP - 1:
                yield _STEP_CALLS
            kind = type(record)
            if kind is BeginTransactionRecord:
                if pending is not None:
                    raise ReplayError("a metadata transaction begins inside another")
                pending = []
            elif kind is EndTransactionRecord:
                if pending is None:
                    raise ReplayError("a metadata transaction ends without a begin")
                for held in pending:
                    draft.replay(held)
                    yield _STEP_CALLS // _RECORDS_PER_STEP
                pending = None
            elif kind is AbortTransactionRecord:
                if pending is None:
                    raise ReplayError("a metadata transaction aborts without a begin")
                pending = None
            elif pending is not None:
                pending.append(record)
            else:
                draft.replay(record)
        return StagedDelta((yield from draft.finish(last_offset, epoch, timestamp_ms)), pending)
