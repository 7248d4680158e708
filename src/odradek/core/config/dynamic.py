"""Which broker settings may change at run time, and Kafka's errors for the others. Pure."""

from collections.abc import Mapping

from odradek.core.config.keys import BROKER_KEYS, LISTENER_PREFIX, broker_key
from odradek.core.config.node import NodeConfig
from odradek.core.config.rules import check_node
from odradek.core.config.values import ConfigError

# Security settings that only make sense for one listener: never without `listener.name.NAME.`.
_PER_LISTENER = (
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)


def validate_dynamic_broker_configs(
    node: NodeConfig, configs: Mapping[str, str], cluster_default: bool
) -> None:
    """Raise ConfigError if a setting cannot change at run time, for this broker or for all brokers
    (`cluster_default`).

    `configs` has every setting that will be set there, not only the new ones.
    """
    frozen = [name for name in configs if (key := BROKER_KEYS.get(name)) is not None and key.read_only]
    _refuse(frozen, "Cannot update these configs dynamically")
    without_prefix = [name for name in configs if name in _PER_LISTENER]
    _refuse(
        without_prefix,
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    for name, text in configs.items():
        key = broker_key(name)
        if key is not None:
            key.parse(text)
    if cluster_default:
        single = [
            name
            for name in configs
            if name.startswith(LISTENER_PREFIX)
            or ((key := BROKER_KEYS.get(name)) is not None and key.per_broker)
        ]
        _refuse(single, "Cannot update these configs at default cluster level, broker id must be specified")
    changed = NodeConfig(node.raw)
    if cluster_default:
        changed.set_dynamic(node.dynamic_broker, configs)
    else:
        changed.set_dynamic(configs, node.dynamic_default)
    check_node(changed)
    _check_cleaner_threads(node.int("log.cleaner.threads"), changed.int("log.cleaner.threads"))


def _check_cleaner_threads(now: int, wanted: int) -> None:
    """One change may at most halve or double the number, as for all thread pools of Kafka."""
    if wanted < now // 2:
        reason = f"Log cleaner threads cannot be reduced to less than half the current value {now}"
    elif wanted > now * 2:
        reason = f"Log cleaner threads cannot be increased to more than double the current value {now}"
    else:
        return
    raise ConfigError("log.cleaner.threads", str(wanted), reason, reason)


def _refuse(names: list[str], reason: str) -> None:
    if names:
        listed = ", ".join(sorted(names))
        raise ConfigError(names[0], None, reason, f"{reason}: [{listed}]")
