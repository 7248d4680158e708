"""Principals as one node tells another about them: DefaultPrincipalData in Envelope. Bytes only.

version int16, then by it: type compact string, name compact string, token_authenticated bool, tags
"""

from typing import Final

from odradek.core.errors import ProtocolError
from odradek.core.principals import Principal
from odradek.core.types import Buffer
from odradek.wire.layout import Layout, of

_VERSION: Final = 0


class _Data(Layout, versions=(0, 0), flexible_from=0):
    type: str = of("string")
    name: str = of("string")
    token_authenticated: bool = of("bool")


def write_principal(principal: Principal) -> bytes:
    data = _Data(type=principal.type, name=principal.name, token_authenticated=principal.token_authenticated)
    return _VERSION.to_bytes(2, "big") + _Data.codec.encoder(_VERSION)(data)


def read_principal(data: Buffer | None) -> Principal:
    """ProtocolError where the bytes name nobody."""
    if data is None or len(data) < 2 or int.from_bytes(data[:2], "big") != _VERSION:
        raise ProtocolError("a forwarded request without a principal")
    try:
        found, _ = _Data.codec.decoder(_VERSION)(data, 2)
    except Exception as e:
        raise ProtocolError(f"a principal that cannot be read: {e}") from e
    return Principal(found.type, found.name, found.token_authenticated)
