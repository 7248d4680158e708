"""Made by tools/stubs from definitions/describe_user_scram_credentials.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeUserScramCredentialsRequest(Message):
    users: Sequence[UserName] | None
    def __init__(self, *, users: Sequence[UserName] | None = ...) -> None: ...

class UserName(Message):
    name: str
    def __init__(self, *, name: str = ...) -> None: ...
