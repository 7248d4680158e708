"""Made by tools/stubs from definitions/controller_registration.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ControllerRegistrationRequest(Message):
    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    listeners: Sequence[Listener]
    features: Sequence[Feature]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        incarnation_id: UUID = ...,
        zk_migration_ready: bool = ...,
        listeners: Sequence[Listener] = ...,
        features: Sequence[Feature] = ...,
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
