"""The metadata log into images: batch by batch, transaction by transaction. Pure.

A `Replayer` follows the log. Each batch of records becomes one `MetadataDelta`. Records of a metadata
transaction take effect together, at its end. What a single record does is draft.py's.
"""

from collections.abc import Iterable

from odradek.metadata.delta import MetadataDelta
from odradek.metadata.draft import Draft, ReplayError
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)


class Replayer:
    """Holds the newest image and turns each further batch into a delta."""

    __slots__ = ("_transaction", "image")

    def __init__(self, image: MetadataImage = EMPTY_IMAGE) -> None:
        self.image = image
        self._transaction: list[MetadataRecord] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def apply(
        self, records: Iterable[MetadataRecord], *, last_offset: int, epoch: int, timestamp_ms: int
    ) -> MetadataDelta:
        """Replay one batch, of which `last_offset` is the end; the image moves only if all of it applies."""
        draft = Draft(self.image)
        pending = self._transaction
        for record in records:
            kind = type(record)
            if kind is BeginTransactionRecord:
                if pending is not None:
                    raise ReplayError("a metadata transaction begins inside another")
                pending = []
            elif kind is EndTransactionRecord:
                if pending is None:
                    raise ReplayError("a metadata transaction ends that never began")
                for held in pending:
                    draft.replay(held)
                pending = None
            elif kind is AbortTransactionRecord:
                if pending is None:
                    raise ReplayError("a metadata transaction is aborted that never began")
                pending = None
            elif pending is not None:
                pending.append(record)
            else:
                draft.replay(record)
        delta = draft.finish(last_offset, epoch, timestamp_ms)
        self._transaction = pending
        self.image = delta.image
        return delta
