"""The first records of a new active controller. Pure."""

from collections.abc import Sequence

from odradek.controller.result import ControllerResult
from odradek.metadata.bootstrap import bootstrap_batch, bootstrap_features, bootstrap_level
from odradek.metadata.draft import ReplayError
from odradek.metadata.image import MetadataImage
from odradek.metadata.records import AbortTransactionRecord, MetadataRecord
from odradek.metadata.versions import has_transactions


def activation_records(
    image: MetadataImage,
    *,
    in_transaction: bool,
    bootstrap: Sequence[MetadataRecord] | None,
    min_insync_replicas: int,
) -> ControllerResult:
    """Abort a metadata transaction that the last controller left open, and write the bootstrap records to an
    empty log."""
    features = bootstrap_features() if bootstrap is None else bootstrap
    level = image.metadata_version or bootstrap_level(features)
    if in_transaction and not has_transactions(level):
        raise ReplayError(
            f"a transaction is open, but metadata.version {level} does not support transactions"
        )
    records: list[MetadataRecord] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if not image.metadata_version:
        records += bootstrap_batch(features, min_insync_replicas)
    is_atomic = bool(image.metadata_version) or not has_transactions(level)
    return ControllerResult(records, None, is_atomic=is_atomic)
