"""The features of a cluster: their finalized and supported levels, and a change of one of them."""

from typing import Any, Final, NamedTuple

from odradek.cli.errors import kafka_failure
from odradek.cli.requests.cluster_access import ClusterAccess
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
VERBS: Final = ("upgrade", "downgrade")


class FeatureChange(NamedTuple):
    """What `upgrade FEATURE LEVEL` and `downgrade FEATURE LEVEL` ask for."""

    feature: str
    level: int
    is_downgrade: bool

    @classmethod
    def parse(cls, words: list[str]) -> "FeatureChange":
        if len(words) != 3 or words[0] not in VERBS:
            raise ValueError("give upgrade FEATURE LEVEL or downgrade FEATURE LEVEL")
        verb, feature, level = words
        if not (level.isascii() and level.isdigit()):
            raise ValueError(f"{level} is no level: give a number")
        return cls(feature, int(level), verb == "downgrade")


def feature_rows(cluster: ClusterAccess) -> list[list[Any]]:
    """Name, finalized level, lowest and highest supported level. A level of 0 is not finalized."""
    from odradek import __version__

    types = request_types(ApiKey.API_VERSIONS)
    request = types.ApiVersionsRequest(client_software_name="odradek", client_software_version=__version__)
    response = cluster.send(ApiKey.API_VERSIONS, request)
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    return [
        [feature.name, finalized.get(feature.name), feature.min_version, feature.max_version]
        for feature in sorted(response.supported_features, key=lambda feature: str(feature.name))
    ]


def finalized_level(cluster: ClusterAccess, feature: str) -> int:
    return next((row[1] or 0 for row in feature_rows(cluster) if row[0] == feature), 0)


def update_feature(
    cluster: ClusterAccess, change: FeatureChange, *, is_unsafe: bool, validate_only: bool
) -> None:
    types = request_types(ApiKey.UPDATE_FEATURES)
    kind = UPGRADE
    if change.is_downgrade:
        kind = UNSAFE_DOWNGRADE if is_unsafe else SAFE_DOWNGRADE
    update = types.FeatureUpdateKey(feature=change.feature, max_version_level=change.level, upgrade_type=kind)
    request = types.UpdateFeaturesRequest(
        timeout=cluster.timeout_ms, feature_updates=[update], validate_only=validate_only
    )
    response = cluster.send(ApiKey.UPDATE_FEATURES, request)
    for answer in (response, *response.results):
        if answer.error_code:
            error = KafkaError(ErrorCode(answer.error_code), answer.error_message)
            raise kafka_failure(f"feature {change.feature}", change.feature, error)
