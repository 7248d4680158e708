"""The first records of a new cluster: the features of its release and the configs that they need. Pure.

`formatting.py` writes them to bootstrap.checkpoint. The first controller writes them to its log.
"""

from collections.abc import Sequence

from odradek.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER
from odradek.metadata.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from odradek.metadata.versions import METADATA_VERSION, NEWEST_METADATA_VERSION, has_transactions

# share.version and streams.version stay at 0, which has no record: their groups are not served.
_FEATURES = {
    METADATA_VERSION: NEWEST_METADATA_VERSION,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "transaction.version": 2,
}
_ELR = "eligible.leader.replicas.version"
_MIN_ISR = "min.insync.replicas"


def bootstrap_features() -> list[MetadataRecord]:
    """The newest levels of the supported features, metadata.version first."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in _FEATURES.items()]


def bootstrap_batch(records: Sequence[MetadataRecord], min_insync_replicas: int) -> list[MetadataRecord]:
    """The first data batch of a log: one metadata transaction, if the metadata.version supports them."""
    batch = list(records)
    if any(isinstance(r, FeatureLevelRecord) and r.name == _ELR and r.feature_level for r in records):
        batch.append(
            ConfigRecord(
                resource_type=RESOURCE_BROKER,
                resource_name=CLUSTER_DEFAULT,
                name=_MIN_ISR,
                value=str(min_insync_replicas),
            )
        )
    if not has_transactions(bootstrap_level(records)):
        return batch
    return [BeginTransactionRecord(name="Bootstrap records"), *batch, EndTransactionRecord()]


def bootstrap_level(records: Sequence[MetadataRecord]) -> int:
    """The metadata.version of the bootstrap records."""
    return max(
        (
            r.feature_level
            for r in records
            if isinstance(r, FeatureLevelRecord) and r.name == METADATA_VERSION
        ),
        default=0,
    )
