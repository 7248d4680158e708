"""Made by tools/stubs from definitions/api_versions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ApiVersionsResponse(Message):
    error_code: int
    api_keys: Sequence[ApiVersion]
    throttle_time: int
    supported_features: Sequence[SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: Sequence[FinalizedFeatureKey]
    zk_migration_ready: bool
    def __init__(
        self,
        *,
        error_code: int = ...,
        api_keys: Sequence[ApiVersion] = ...,
        throttle_time: int = ...,
        supported_features: Sequence[SupportedFeatureKey] = ...,
        finalized_features_epoch: int = ...,
        finalized_features: Sequence[FinalizedFeatureKey] = ...,
        zk_migration_ready: bool = ...,
    ) -> None: ...

class ApiVersion(Message):
    api_key: int
    min_version: int
    max_version: int
    def __init__(self, *, api_key: int = ..., min_version: int = ..., max_version: int = ...) -> None: ...

class SupportedFeatureKey(Message):
    name: str
    min_version: int
    max_version: int
    def __init__(self, *, name: str = ..., min_version: int = ..., max_version: int = ...) -> None: ...

class FinalizedFeatureKey(Message):
    name: str
    max_version_level: int
    min_version_level: int
    def __init__(
        self, *, name: str = ..., max_version_level: int = ..., min_version_level: int = ...
    ) -> None: ...
