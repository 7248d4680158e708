"""Made by tools/stubs from definitions/update_features.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class UpdateFeaturesRequest(Message):
    timeout: int
    feature_updates: Sequence[FeatureUpdateKey]
    validate_only: bool
    def __init__(
        self,
        *,
        timeout: int = ...,
        feature_updates: Sequence[FeatureUpdateKey] = ...,
        validate_only: bool = ...,
    ) -> None: ...

class FeatureUpdateKey(Message):
    feature: str
    max_version_level: int
    allow_downgrade: bool
    upgrade_type: int
    def __init__(
        self,
        *,
        feature: str = ...,
        max_version_level: int = ...,
        allow_downgrade: bool = ...,
        upgrade_type: int = ...,
    ) -> None: ...
