"""Checks leader-epoch-checkpoint against the epochs in the batches. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from odradek.log.verifying.findings import Findings
from odradek.records.header import BatchMeta

_EPOCH_AT = 12
BELIEVED = "used as it is: truncation after an election depends on it. Remove the file to rebuild it"


class _Step(NamedTuple):
    """A batch whose epoch differs from that of the batch before it (`before`)."""

    batch: BatchMeta
    log_file: str
    position: int
    fate: str
    before: int


class EpochCheck:
    """`recovered_from`: batches from this offset may have later epochs than the file; recovery adds them."""

    def __init__(
        self, file: str, entries: Sequence[tuple[int, int]], recovered_from: int | None, into: Findings
    ) -> None:
        self._file = file
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        self._recovered_from = recovered_from
        self._into = into
        self._last = -1
        self._step: _Step | None = None

    def take(self, batch: BatchMeta, log_file: str, position: int, fate: str) -> None:
        epoch = batch.partition_leader_epoch
        if epoch < 0:
            return
        step, self._step = self._step, None
        if epoch < self._last:
            if step is None:
                self._report_batch(_Step(batch, log_file, position, fate, self._last))
                return
            # The epoch of the previous batch was too high.
            self._report_batch(step)
            self._last = step.before
        elif step is not None:
            self._compare(step.batch)
        if epoch > self._last:
            self._step = _Step(batch, log_file, position, fate, self._last)
            self._last = epoch
        else:
            self._compare(batch)

    def end(self) -> None:
        if self._step is not None:
            self._compare(self._step.batch)

    def _report_batch(self, step: "_Step") -> None:
        self._into.add(
            step.log_file,
            step.position + _EPOCH_AT,
            "leader epoch out of order",
            "the epoch of its neighbours",
            step.batch.partition_leader_epoch,
            step.fate,
        )

    def _compare(self, batch: BatchMeta) -> None:
        at = bisect_right(self._starts, batch.base_offset) - 1
        if at < 0:
            if not self._starts and not self._is_recovered(batch):
                self._report(batch, None)
            return
        epoch = batch.partition_leader_epoch
        if self._epochs[at] != epoch and not (epoch > self._epochs[-1] and self._is_recovered(batch)):
            self._report(batch, self._epochs[at])

    def _is_recovered(self, batch: BatchMeta) -> bool:
        return self._recovered_from is not None and batch.base_offset >= self._recovered_from

    def _report(self, batch: BatchMeta, known: int | None) -> None:
        self._into.add(
            self._file,
            None,
            "disagrees with the log",
            f"epoch {batch.partition_leader_epoch} for offset {batch.base_offset}",
            "none" if known is None else f"epoch {known}",
            BELIEVED,
        )
