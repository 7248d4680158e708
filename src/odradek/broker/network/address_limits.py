"""Counts connections per address: max.connections.per.ip and max.connections.per.ip.overrides.

The server closes connections over the limit. A changed limit applies to new connections.
"""

import ipaddress
from collections import Counter
from functools import lru_cache

from odradek.core.configs import ConfigError, NodeConfig
from odradek.runtime.api import Runtime


class AddressLimits:
    """Connections by address. An IPv4 address on an IPv6 listener counts as the same address."""

    __slots__ = ("_asked", "_counts", "_default", "_overrides", "_runtime")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._counts: Counter[str] = Counter()
        self._default = 0
        self._overrides: dict[str, int] = {}
        self._asked: object = None

    async def configure(self, config: NodeConfig) -> None:
        """Apply the current limits. Raises ConfigError for a host name that cannot be resolved: then the
        previous overrides stay."""
        self._default = config.int("max.connections.per.ip")
        asked = self._asked = object()
        found = {}
        for item in config.string("max.connections.per.ip.overrides").split(","):
            if item:
                host, _, count = item.rpartition(":")
                found[await self._resolved(host.strip(), item)] = int(count)
        if asked is self._asked:  # the configuration may have changed again while names were resolved
            self._overrides = found

    async def _resolved(self, host: str, item: str) -> str:
        bare = host.strip("[]")
        address = _normal(bare)
        if address != bare or _is_address(bare):
            return address
        try:
            return _normal(await self._runtime.net.resolve(host))
        except OSError as e:
            raise ConfigError("max.connections.per.ip.overrides", item, f"cannot resolve {host}: {e}") from e

    def limit(self, address: str) -> int:
        return self._overrides.get(_normal(address), self._default)

    def has_room(self, address: str) -> bool:
        return self._counts[_normal(address)] < self.limit(address)

    def came(self, address: str) -> None:
        self._counts[_normal(address)] += 1

    def went(self, address: str) -> None:
        address = _normal(address)
        self._counts[address] -= 1
        assert self._counts[address] >= 0, "who goes has come"
        if not self._counts[address]:
            del self._counts[address]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@lru_cache(1024)
def _normal(text: str) -> str:
    """The normal form of an address. Other texts stay as they are."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
