"""UpdateFeatures: changes all features of a request, or none. Pure."""

from typing import TYPE_CHECKING

from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER
from odradek.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from odradek.metadata.versions import (
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    loses_metadata,
)
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.update_features import UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_ELR = "eligible.leader.replicas.version"
_MIN_ISR = "min.insync.replicas"


def update_features(
    c: "Controller", request: "UpdateFeaturesRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    types = responses.update_features
    records: list[MetadataRecord] = []
    for update in request.feature_updates:
        yield 2 * STEP
        try:
            records += _update(c, update.feature, update.max_version_level, update.upgrade_type)
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


def _update(c: "Controller", feature: str, level: int, upgrade_type: int) -> list[MetadataRecord]:
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
        # Its level is in the control records of the quorum, and a new log starts at the newest.
        if level != current:
            raise _invalid(feature, level, "Can't downgrade the version of this feature.")
        return []
    if feature == METADATA_VERSION and level < current:
        _check_downgrade(current, level, upgrade_type)
    if level == current:
        return []
    records: list[MetadataRecord] = []
    if feature == _ELR and level > 0:
        records += _min_isr_for_the_cluster(c)
    return [*records, FeatureLevelRecord(name=feature, feature_level=level)]


def _check_support(c: "Controller", feature: str, level: int) -> None:
    """Every node must support the level, this controller first."""
    nodes = [(f"Local controller {c.node_id}", SUPPORTED_FEATURES)]
    nodes += [(f"Broker {broker.id}", dict(broker.features)) for broker in c.image.brokers.values()]
    nodes += [(f"Controller {n.id}", dict(n.features)) for n in c.image.controllers.values()]
    for name, supported in nodes:
        levels = supported.get(feature)
        if levels is None:
            raise _invalid(feature, level, f"{name} does not support this feature.")
        if level not in levels:
            raise _invalid(feature, level, f"{name} only supports versions {levels.min}-{levels.max}")


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
