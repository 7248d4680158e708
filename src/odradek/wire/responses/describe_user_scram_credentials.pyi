"""Made by tools/stubs from definitions/describe_user_scram_credentials.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeUserScramCredentialsResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    results: Sequence[DescribeUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: Sequence[DescribeUserScramCredentialsResult] = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResult(Message):
    user: str
    error_code: int
    error_message: str | None
    credential_infos: Sequence[CredentialInfo]
    def __init__(
        self,
        *,
        user: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        credential_infos: Sequence[CredentialInfo] = ...,
    ) -> None: ...

class CredentialInfo(Message):
    mechanism: int
    iterations: int
    def __init__(self, *, mechanism: int = ..., iterations: int = ...) -> None: ...
