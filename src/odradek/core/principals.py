"""Who asks, as far as a node knows: from the listener that a request came through."""

from typing import Final, NamedTuple

ANONYMOUS_TYPE: Final = "User"
ANONYMOUS_NAME: Final = "ANONYMOUS"
_LOCALHOST: Final = bytes((127, 0, 0, 1))


class Principal(NamedTuple):
    """Everybody is anonymous on a listener without authentication."""

    type: str = ANONYMOUS_TYPE
    name: str = ANONYMOUS_NAME
    token_authenticated: bool = False


class Requester(NamedTuple):
    """The client on whose behalf a broker asks the controller. `host` is its address, of 4 or 16 bytes."""

    principal: Principal = Principal()
    client_id: str | None = None
    host: bytes = _LOCALHOST


def packed_address(host: str) -> bytes:
    """The bytes of an address in the form that sockets tell; those of this host for anything else."""
    if ":" in host:
        from ipaddress import IPv6Address

        return IPv6Address(host.partition("%")[0]).packed
    parts = host.split(".")
    return bytes(map(int, parts)) if len(parts) == 4 and all(map(str.isdecimal, parts)) else _LOCALHOST
