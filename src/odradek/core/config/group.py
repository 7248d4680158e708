"""Checks the settings of a group: known keys, values within their own and the broker's bounds. Pure."""

from collections.abc import Mapping

from odradek.core.config.keys import BROKER_KEYS, GROUP_KEYS
from odradek.core.config.node import NodeConfig
from odradek.core.config.values import ConfigError


def validate_group_configs(configs: Mapping[str, str], node: NodeConfig) -> None:
    """Raises ConfigError in Kafka's words."""
    for name, value in configs.items():
        if name not in GROUP_KEYS:
            reason = f"Unknown group config name: {name}"
            raise ConfigError(name, value, reason, reason)
        parsed = GROUP_KEYS[name].parse(value)
        kind, _, rest = name.partition(".")
        for bound, word in (("max", "less"), ("min", "greater")):
            limit = f"group.{kind}.{bound}.{rest}"
            if limit not in BROKER_KEYS or not isinstance(parsed, int):
                continue
            is_beyond = parsed > node.int(limit) if bound == "max" else parsed < node.int(limit)
            if is_beyond:
                reason = f"{name} must be {word} than or equal to {limit}"
                raise ConfigError(name, value, reason, reason)
    for kind in ("consumer", "share", "streams"):
        _check_order(kind, configs, node)


def _check_order(kind: str, configs: Mapping[str, str], node: NodeConfig) -> None:
    """The session timeout must be longer than the heartbeat interval."""
    session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    values = [int(configs.get(name, node.int(f"group.{name}"))) for name in (session, interval)]
    if values[0] <= values[1]:
        reason = f"{session} must be greater than {interval}"
        raise ConfigError(session, configs.get(session), reason, reason)
