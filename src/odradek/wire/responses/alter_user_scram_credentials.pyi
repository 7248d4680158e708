"""Made by tools/stubs from definitions/alter_user_scram_credentials.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterUserScramCredentialsResponse(Message):
    throttle_time: int
    results: Sequence[AlterUserScramCredentialsResult]
    def __init__(
        self, *, throttle_time: int = ..., results: Sequence[AlterUserScramCredentialsResult] = ...
    ) -> None: ...

class AlterUserScramCredentialsResult(Message):
    user: str
    error_code: int
    error_message: str | None
    def __init__(
        self, *, user: str = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
