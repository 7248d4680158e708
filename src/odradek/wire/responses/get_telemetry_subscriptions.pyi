"""Made by tools/stubs from definitions/get_telemetry_subscriptions.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class GetTelemetrySubscriptionsResponse(Message):
    throttle_time: int
    error_code: int
    client_instance_id: UUID
    subscription_id: int
    accepted_compression_types: Sequence[int]
    push_interval: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: Sequence[str]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        client_instance_id: UUID = ...,
        subscription_id: int = ...,
        accepted_compression_types: Sequence[int] = ...,
        push_interval: int = ...,
        telemetry_max_bytes: int = ...,
        delta_temporality: bool = ...,
        requested_metrics: Sequence[str] = ...,
    ) -> None: ...
