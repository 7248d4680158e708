"""UpdateFeatures changes all features of a request or none, and says why in Apache's words."""

import pytest

from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, with_one_broker

UPGRADE, SAFE, UNSAFE = 1, 2, 3
_FAILED = "The update failed for all features since the following feature had an error: "


def update(h: Harness, *updates: tuple[str, int, int], validate_only: bool = False) -> tuple[int, str | None]:
    types = request_types(ApiKey.UPDATE_FEATURES)
    asked = [
        types.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    request = types.UpdateFeaturesRequest(feature_updates=asked, validate_only=validate_only)
    answer = h.call(ApiKey.UPDATE_FEATURES, request)
    return answer.error_code, answer.error_message


def test_a_level_goes_up_and_down_and_zero_removes_it() -> None:
    h = with_one_broker()
    assert update(h, ("group.version", 1, UPGRADE)) == (0, None)
    assert h.image.features["group.version"] == 1
    assert update(h, ("group.version", 0, SAFE)) == (0, None)
    assert "group.version" not in h.image.features


def test_the_level_in_force_is_no_change() -> None:
    h = with_one_broker()
    assert update(h, ("metadata.version", 30, UPGRADE)) == (0, None)
    assert update(h, ("kraft.version", 1, UPGRADE)) == (0, None)
    assert h.records == []


def test_switching_eligible_leaders_on_writes_down_one_min_isr_for_the_cluster() -> None:
    h = with_one_broker(elr=False)
    assert update(h, ("eligible.leader.replicas.version", 1, UPGRADE)) == (0, None)
    assert h.kinds() == ["ConfigRecord", "FeatureLevelRecord"]
    assert h.image.config(4, "") == {"min.insync.replicas": "1"}


_NO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
    "downgrade."
)


@pytest.mark.parametrize(
    ("name", "level", "kind", "reason"),
    [
        (
            "foo",
            1,
            UPGRADE,
            "Invalid update version 1 for feature foo. Local controller 1 does not support this feature.",
        ),
        (
            "metadata.version",
            31,
            UPGRADE,
            "Invalid update version 31 for feature metadata.version. Local controller 1 only supports "
            "versions 7-30",
        ),
        (
            "metadata.version",
            29,
            UPGRADE,
            f"Invalid update version 29 for feature metadata.version. {_NO_DOWNGRADE}",
        ),
        (
            "metadata.version",
            29,
            SAFE,
            "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested "
            "downgrade because it might delete metadata information.",
        ),
        (
            "metadata.version",
            29,
            UNSAFE,
            "Unsupported metadata.version downgrade from 30 to 29. Unsafe metadata downgrade is not "
            "supported in this version.",
        ),
        (
            "group.version",
            -1,
            UPGRADE,
            "Invalid update version -1 for feature group.version. A feature version cannot be less than 0.",
        ),
        (
            "group.version",
            1,
            0,
            "Invalid update version 1 for feature group.version. The controller does not support the given "
            "upgrade type.",
        ),
        ("kraft.version", 0, UPGRADE, f"Invalid update version 0 for feature kraft.version. {_NO_DOWNGRADE}"),
        (
            "kraft.version",
            0,
            SAFE,
            "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this "
            "feature.",
        ),
    ],
)
def test_a_level_that_cannot_be_is_refused(name: str, level: int, kind: int, reason: str) -> None:
    h = with_one_broker()
    assert update(h, (name, level, kind)) == (ErrorCode.INVALID_UPDATE_VERSION, _FAILED + reason)


def test_one_refused_feature_refuses_them_all() -> None:
    h = with_one_broker()
    assert (
        update(h, ("group.version", 1, UPGRADE), ("foo", 1, UPGRADE))[0] == ErrorCode.INVALID_UPDATE_VERSION
    )
    assert h.records == []


def test_a_level_that_a_broker_does_not_support_is_refused() -> None:
    h = with_one_broker()
    types = request_types(ApiKey.BROKER_REGISTRATION)
    old = [
        types.Feature(name=name, min_supported_version=0, max_supported_version=high)
        for name, high in (("metadata.version", 30), ("kraft.version", 1), ("group.version", 0))
    ]
    old.append(
        types.Feature(
            name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1
        )
    )
    assert h.register(2, features=old).error_code == 0
    code, message = update(h, ("group.version", 1, UPGRADE))
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert message == (
        f"{_FAILED}Invalid update version 1 for feature group.version. "
        "Broker 2 does not support this feature."
    )


def test_validate_only_changes_nothing() -> None:
    h = with_one_broker()
    assert update(h, ("group.version", 1, UPGRADE), validate_only=True) == (0, None)
    assert h.records == []
