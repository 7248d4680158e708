"""Made by tools/stubs from definitions/alter_user_scram_credentials.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterUserScramCredentialsRequest(Message):
    deletions: Sequence[ScramCredentialDeletion]
    upsertions: Sequence[ScramCredentialUpsertion]
    def __init__(
        self,
        *,
        deletions: Sequence[ScramCredentialDeletion] = ...,
        upsertions: Sequence[ScramCredentialUpsertion] = ...,
    ) -> None: ...

class ScramCredentialDeletion(Message):
    name: str
    mechanism: int
    def __init__(self, *, name: str = ..., mechanism: int = ...) -> None: ...

class ScramCredentialUpsertion(Message):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
        iterations: int = ...,
        salt: bytes = ...,
        salted_password: bytes = ...,
    ) -> None: ...
