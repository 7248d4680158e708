"""Made by tools/stubs from definitions/update_features.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class UpdateFeaturesResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    results: Sequence[UpdatableFeatureResult]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: Sequence[UpdatableFeatureResult] = ...,
    ) -> None: ...

class UpdatableFeatureResult(Message):
    feature: str
    error_code: int
    error_message: str | None
    def __init__(
        self, *, feature: str = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
