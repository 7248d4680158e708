"""Refuses to start a node whose configuration asks for protection that Odradek does not have. Pure.

With such a setting Apache Kafka encrypts, authenticates, authorizes or checks a policy. Other settings
without effect do not prevent a start: inert.py finds them.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from odradek.core.config.keys import BROKER_KEYS, LISTENER_PREFIX
from odradek.core.config.listeners import SUPPORTED_PROTOCOL, why_unsupported
from odradek.core.config.values import ConfigError

if TYPE_CHECKING:
    from odradek.core.config.node import NodeConfig

# Settings that name a class of an operator, and what such a class is.
_CLASSES: Mapping[str, str] = {
    "alter.config.policy.class.name": "policy classes",
    "authorizer.class.name": "authorizers",
    "client.quota.callback.class": "callback classes",
    "create.topic.policy.class.name": "policy classes",
    "principal.builder.class": "principal builders",
    "sasl.client.callback.handler.class": "callback classes",
    "sasl.login.callback.handler.class": "callback classes",
    "sasl.server.callback.handler.class": "callback classes",
}

PROTECTING_KEYS = frozenset(_CLASSES)
"""A node does not start if one of them names a class."""


def check_protection(config: "NodeConfig") -> None:
    """Raise ConfigError if Apache Kafka would protect something that this node would not."""
    protocols = config.listener_security_protocols
    _check_protocols("listeners", _names(config.list("listeners")), protocols)
    _check_protocols("advertised.listeners", _names(config.list("advertised.listeners")), protocols)
    _check_protocols("controller.listener.names", config.controller_listener_names, protocols)
    if config.is_broker:
        by_name = config.string("inter.broker.listener.name") != ""
        key = "inter.broker.listener.name" if by_name else "security.inter.broker.protocol"
        _check_protocols(key, [config.inter_broker_listener_name], protocols)
    for name in sorted({*config.raw, *config.dynamic_default, *config.dynamic_broker}):
        _check_class(name, config.get(name) or "")


def _names(endpoints: Iterable[str]) -> list[str]:
    return [endpoint.partition("://")[0] for endpoint in endpoints]


def _check_protocols(key: str, names: Iterable[str], protocols: Mapping[str, str]) -> None:
    for name in names:
        protocol = protocols.get(name.upper(), SUPPORTED_PROTOCOL)
        reason = why_unsupported(protocol)
        if reason is not None:
            is_mapped = name.upper() != protocol
            where = f" ({name} in listener.security.protocol.map)" if is_mapped else ""
            raise ConfigError(key, name, reason, f"{key}: {reason}{where}")


def _check_class(name: str, text: str) -> None:
    """A class may be set for all listeners, for one, or for one and a SASL mechanism."""
    key = name
    if name.startswith(LISTENER_PREFIX):
        key = next((known for known in _CLASSES if name.endswith(f".{known}")), "")
    if key not in _CLASSES or text.strip() in ("", BROKER_KEYS[key].default):
        return
    reason = f"{_CLASSES[key]} are not supported yet; remove the setting to run without"
    raise ConfigError(name, text, reason, f"{name}={text}: {reason}")
