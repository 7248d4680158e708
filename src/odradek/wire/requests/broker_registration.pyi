"""Made by tools/stubs from definitions/broker_registration.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class BrokerRegistrationRequest(Message):
    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: Sequence[Listener]
    features: Sequence[Feature]
    rack: str | None
    is_migrating_zk_broker: bool
    log_dirs: Sequence[UUID]
    previous_broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        cluster_id: str = ...,
        incarnation_id: UUID = ...,
        listeners: Sequence[Listener] = ...,
        features: Sequence[Feature] = ...,
        rack: str | None = ...,
        is_migrating_zk_broker: bool = ...,
        log_dirs: Sequence[UUID] = ...,
        previous_broker_epoch: int = ...,
    ) -> None: ...

class Listener(Message):
    name: str
    host: str
    port: int
    security_protocol: int
    def __init__(
        self, *, name: str = ..., host: str = ..., port: int = ..., security_protocol: int = ...
    ) -> None: ...

class Feature(Message):
    name: str
    min_supported_version: int
    max_supported_version: int
    def __init__(
        self, *, name: str = ..., min_supported_version: int = ..., max_supported_version: int = ...
    ) -> None: ...
