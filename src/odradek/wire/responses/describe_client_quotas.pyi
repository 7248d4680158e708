"""Made by tools/stubs from definitions/describe_client_quotas.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeClientQuotasResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    entries: Sequence[EntryData] | None
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        entries: Sequence[EntryData] | None = ...,
    ) -> None: ...

class EntryData(Message):
    entity: Sequence[EntityData]
    values: Sequence[ValueData]
    def __init__(self, *, entity: Sequence[EntityData] = ..., values: Sequence[ValueData] = ...) -> None: ...

class EntityData(Message):
    entity_type: str
    entity_name: str | None
    def __init__(self, *, entity_type: str = ..., entity_name: str | None = ...) -> None: ...

class ValueData(Message):
    key: str
    value: float
    def __init__(self, *, key: str = ..., value: float = ...) -> None: ...
