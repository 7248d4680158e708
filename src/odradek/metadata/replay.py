"""Replayer: turns the batches of the metadata log into images and deltas. Pure.

The batches of one advance become one `MetadataDelta`. Records of a metadata transaction take effect together
at its end: while one is open, the image stays at the offset before it. draft.py applies single records.
"""

from collections.abc import Iterable, Sequence
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
from odradek.runtime.slices import FEW, Paced, at_once

_RECORDS_PER_STEP = 16
_STEP_CALLS = 10 * _RECORDS_PER_STEP


class Position(NamedTuple):
    """The last record that an image contains."""

    offset: int
    epoch: int
    timestamp_ms: int


class StagedDelta(NamedTuple):
    """The effect of batches that are not in the log yet."""

    delta: MetadataDelta
    transaction: tuple[MetadataRecord, ...] | None


class Staging:
    """Batches on their way into one delta. `add` them in the order of the log, then `finish`."""

    __slots__ = ("_draft", "_position", "_transaction")

    def __init__(self, image: MetadataImage, transaction: tuple[MetadataRecord, ...] | None) -> None:
        self._draft = ImageDraft(image)
        self._position = Position(image.offset, image.epoch, image.timestamp_ms)
        self._transaction = None if transaction is None else list(transaction)

    def add(
        self, records: Sequence[MetadataRecord], *, last_offset: int, epoch: int, timestamp_ms: int
    ) -> Paced[None]:
        """One batch, of which `last_offset` is the end. A control batch has no records here."""
        draft, held = self._draft, self._transaction
        base_offset = last_offset + 1 - len(records)
        for i, record in enumerate(records):
            if i % _RECORDS_PER_STEP == _RECORDS_PER_STEP - 1:
                yield _STEP_CALLS
            kind = type(record)
            if kind is BeginTransactionRecord:
                if held is not None:
                    raise ReplayError("a metadata transaction begins inside another")
                held = []
                if i:
                    self._position = Position(base_offset + i - 1, epoch, timestamp_ms)
            elif kind is EndTransactionRecord:
                if held is None:
                    raise ReplayError("a metadata transaction ends without a begin")
                for n, late in enumerate(held):
                    if n % _RECORDS_PER_STEP == _RECORDS_PER_STEP - 1:
                        yield _STEP_CALLS
                    draft.replay(late)
                held = None
            elif kind is AbortTransactionRecord:
                if held is None:
                    raise ReplayError("a metadata transaction aborts without a begin")
                held = None
            elif held is not None:
                held.append(record)
            else:
                draft.replay(record)
        self._transaction = held
        if held is None:
            self._position = Position(last_offset, epoch, timestamp_ms)
        yield FEW

    def finish(self) -> Paced[StagedDelta]:
        """Where everything belongs to an open transaction the image stays the one it is."""
        held, base = self._transaction, self._draft.base
        if self._position == (base.offset, base.epoch, base.timestamp_ms):
            delta = MetadataDelta(base, base)
        else:
            delta = yield from self._draft.finish(*self._position)
        return StagedDelta(delta, None if held is None else tuple(held))


class Replayer:
    """Has the newest image, and the open transaction after it."""

    __slots__ = ("_transaction", "image")

    def __init__(
        self, image: MetadataImage = EMPTY_IMAGE, transaction: tuple[MetadataRecord, ...] | None = None
    ) -> None:
        self.image = image
        self._transaction = transaction

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def copy(self) -> "Replayer":
        """A copy at the same offset."""
        return Replayer(self.image, self._transaction)

    def begin(self) -> Staging:
        """Compute the effect of further batches without applying it."""
        return Staging(self.image, self._transaction)

    def stage(
        self, records: Sequence[MetadataRecord], *, last_offset: int, epoch: int, timestamp_ms: int
    ) -> Paced[StagedDelta]:
        """Compute the effect of one batch. Raises ReplayError."""
        staging = self.begin()
        yield from staging.add(records, last_offset=last_offset, epoch=epoch, timestamp_ms=timestamp_ms)
        return (yield from staging.finish())

    def take(self, staged: StagedDelta) -> MetadataDelta:
        """Apply a staged delta. The image must be the one that it was staged on."""
        assert staged.delta.previous is self.image, "something was replayed since this was staged"
        self._transaction = staged.transaction
        self.image = staged.delta.image
        return staged.delta

    def apply(
        self, records: Iterable[MetadataRecord], *, last_offset: int, epoch: int, timestamp_ms: int
    ) -> MetadataDelta:
        """Replay one batch synchronously. The image changes only if all of it applies."""
        return self.take(
            at_once(
                self.stage(list(records), last_offset=last_offset, epoch=epoch, timestamp_ms=timestamp_ms)
            )
        )
