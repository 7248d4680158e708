"""Listener endpoints as Kafka writes them (`NAME://host:port`) and their security protocols. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from odradek.core.config.values import ConfigError

# The only one that Odradek supports.
SUPPORTED_PROTOCOL = "PLAINTEXT"
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)"


class Listener(NamedTuple):
    """One endpoint. Port 0 lets the system choose."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def why_unsupported(protocol: str) -> str | None:
    """Why a security protocol cannot be used, by a node or a client; None for the one that can."""
    if protocol.upper() == SUPPORTED_PROTOCOL:
        return None
    known = protocol.upper() in (*SECURITY_PROTOCOLS, "SASL")
    problem = "is not supported yet" if known else "is not a security protocol"
    return f"{protocol} {problem}; use {SUPPORTED_PROTOCOL}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,...` as listener name -> security protocol."""
    key = "listener.security.protocol.map"
    protocols = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in item.rpartition(":"))
        if not colon:
            reason = f"{item} is not in the form NAME:PROTOCOL"
            raise ConfigError(key, text, reason, f"Error parsing configuration property '{key}': {reason}")
        if protocol.upper() not in SECURITY_PROTOCOLS:
            reason = f"Invalid security protocol `{protocol}` defined in {key}"
            raise ConfigError(key, text, reason, reason)
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(items: Sequence[str], protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """The endpoints of `listeners` or `advertised.listeners`; names must differ, and ports unless 0."""
    listeners = []
    for item in items:
        match = re.fullmatch(_ENDPOINT, item)
        if match is None:
            raise _broken(items, f"Unable to parse {item} to a broker endpoint")
        name = match[1].upper()
        if name not in protocols:
            raise _broken(items, f"No security protocol defined for listener {name}")
        listeners.append(Listener(name, match[2], int(match[3]), protocols[name]))
    if len({listener.name for listener in listeners}) < len(listeners):
        raise _broken(items, f"Each listener must have a different name, listeners: {_shown(items)}")
    ports = [listener.port for listener in listeners if listener.port]
    if len(set(ports)) < len(ports):
        raise _broken(items, f"Each listener must have a different port, listeners: {_shown(items)}")
    return tuple(listeners)


def _shown(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _broken(items: Sequence[str], reason: str) -> ConfigError:
    return ConfigError(
        "listeners",
        ",".join(items),
        reason,
        f"Error creating broker listeners from '{_shown(items)}': {reason}",
    )
