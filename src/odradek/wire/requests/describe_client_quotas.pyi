"""Made by tools/stubs from definitions/describe_client_quotas.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeClientQuotasRequest(Message):
    components: Sequence[ComponentData]
    strict: bool
    def __init__(self, *, components: Sequence[ComponentData] = ..., strict: bool = ...) -> None: ...

class ComponentData(Message):
    entity_type: str
    match_type: int
    match: str | None
    def __init__(self, *, entity_type: str = ..., match_type: int = ..., match: str | None = ...) -> None: ...
