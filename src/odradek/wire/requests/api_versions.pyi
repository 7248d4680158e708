"""Made by tools/stubs from definitions/api_versions.py."""

from odradek.wire.classes import Message

class ApiVersionsRequest(Message):
    client_software_name: str
    client_software_version: str
    def __init__(self, *, client_software_name: str = ..., client_software_version: str = ...) -> None: ...
