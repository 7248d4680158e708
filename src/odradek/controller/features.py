"""UpdateFeatures: changes all features of a request, or none. Pure."""

from typing import TYPE_CHECKING

from odradek.controller.result import ControllerResult, check_count
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER, VersionRange
from odradek.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
)
from odradek.metadata.versions import (
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    knows_controllers,
    loses_metadata,
)
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.update_features import UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_ELR = "eligible.leader.replicas.version"
_MIN_ISR = "min.insync.replicas"
_ELR_NEEDS = 23
"""The metadata.version (4.0-IV1) whose records have eligible leader replicas."""
_DISABLED = VersionRange(0, 0)


def update_features(
    c: "Controller", request: "UpdateFeaturesRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    types = responses.update_features
    records: list[MetadataRecord] = []
    proposed = c.image.metadata_version
    for update in request.feature_updates:
        if update.feature == METADATA_VERSION:
            proposed = update.max_version_level
        yield STEP
    for update in request.feature_updates:
        yield 2 * STEP
        try:
            new = _update(c, update.feature, update.max_version_level, update.upgrade_type, proposed)
            if new and update.feature == _ELR and update.max_version_level > 0:
                records += yield from _without_leftovers(c)
            records += new
            check_count(len(records))
        except KafkaError as e:
            message = (
                f"The update failed for all features since the following feature had an error: {e.message}"
            )
            return ControllerResult(
                [], types.UpdateFeaturesResponse(error_code=e.code, error_message=message)
            )
    results = []
    for update in request.feature_updates:
        results.append(types.UpdatableFeatureResult(feature=update.feature, error_message="NONE"))
        yield STEP
    response = types.UpdateFeaturesResponse(error_message=None, results=results)
    return ControllerResult([] if request.validate_only else records, response, is_atomic=True)


def _update(
    c: "Controller", feature: str, level: int, upgrade_type: int, proposed: int
) -> list[MetadataRecord]:
    """`proposed` is the metadata.version after the request."""
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(feature, level, "The controller does not support the given upgrade type.")
    current = c.kraft_version if feature == KRAFT_VERSION else c.image.features.get(feature, 0)
    if level < 0:
        raise _invalid(feature, level, "A feature version cannot be less than 0.")
    _check_support(c, feature, level)
    if level < current and upgrade_type == UPGRADE:
        raise _invalid(
            feature,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        )
    if level > current and upgrade_type != UPGRADE:
        raise _invalid(feature, level, "Can't downgrade to a newer version.")
    if feature == KRAFT_VERSION:
        # Its level is in the control records of the quorum, which raises it (kraft_version.py).
        if level < current:
            raise _invalid(feature, level, "Can't downgrade the version of this feature.")
        return []
    if feature == METADATA_VERSION and level < current:
        _check_downgrade(current, level, upgrade_type)
    if level == current:
        return []
    records: list[MetadataRecord] = []
    if feature == _ELR and level > 0:
        if proposed < _ELR_NEEDS:
            reason = f"{_ELR} could not be set to {level} because it depends on metadata.version level "
            raise _invalid(feature, level, f"{reason}{_ELR_NEEDS}")
        records += _min_isr_for_the_cluster(c)
    return [*records, FeatureLevelRecord(name=feature, feature_level=level)]


def _check_support(c: "Controller", feature: str, level: int) -> None:
    """Every node must support the level, this controller first."""
    others = [n for n in c.image.controllers.values() if n.id != c.node_id]
    nodes = [(f"Local controller {c.node_id}", SUPPORTED_FEATURES)]
    nodes += [(f"Broker {broker.id}", broker.features) for broker in c.image.brokers.values()]
    nodes += [(f"Controller {n.id}", n.features) for n in others]
    for name, supported in nodes:
        levels = supported.get(feature, _DISABLED)
        if level not in levels:
            if levels.max == 0:
                raise _invalid(feature, level, f"{name} does not support this feature.")
            only = str(levels.min) if levels.min == levels.max else f"{levels.min}-{levels.max}"
            raise _invalid(feature, level, f"{name} only supports versions {only}")
    if not knows_controllers(c.image.metadata_version):
        return
    registered = {c.node_id, *(n.id for n in others)}
    for voter in c.voter_ids:
        if voter not in registered:
            reason = f"controller {voter} has not registered, and may not support this feature"
            raise _invalid(feature, level, reason)


def _check_downgrade(current: int, level: int, upgrade_type: int) -> None:
    if not loses_metadata(current, level):
        return
    reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    if upgrade_type == UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    raise KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
    )


def _without_leftovers(c: "Controller") -> Paced[list[MetadataRecord]]:
    """Eligible leader replicas of an earlier time: while nobody kept track, a leader went on without them.

    Where the ISR is empty nobody has led since, so that they are complete still.
    """
    records: list[MetadataRecord] = []
    for topic, index, partition in c.partitions():
        if partition.elr and partition.isr:
            records.append(
                PartitionChangeRecord(
                    partition_id=index, topic_id=topic.id, eligible_leader_replicas=(), last_known_elr=()
                )
            )
        yield FEW
    return records


def _min_isr_for_the_cluster(c: "Controller") -> list[MetadataRecord]:
    """Eligible leader replicas need one min ISR for all brokers: write the current one."""
    records: list[MetadataRecord] = []
    if _MIN_ISR not in c.image.config(RESOURCE_BROKER, CLUSTER_DEFAULT):
        value = str(c.config.int(_MIN_ISR))
        records.append(
            ConfigRecord(
                resource_type=RESOURCE_BROKER, resource_name=CLUSTER_DEFAULT, name=_MIN_ISR, value=value
            )
        )
    for resource_type, name in c.image.configs:
        own = resource_type == RESOURCE_BROKER and name != CLUSTER_DEFAULT
        if own and _MIN_ISR in c.image.config(resource_type, name):
            records.append(
                ConfigRecord(resource_type=resource_type, resource_name=name, name=_MIN_ISR, value=None)
            )
    return records


def _invalid(feature: str, level: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {feature}. {reason}"
    )
