"""Rules between several broker settings, with Kafka's error texts. values.py checks single values."""

from typing import TYPE_CHECKING

from odradek.core.config.protection import check_protection
from odradek.core.config.values import ConfigError

if TYPE_CHECKING:
    from odradek.core.config.node import NodeConfig

_UNROUTABLE = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")


def check_node(config: "NodeConfig") -> None:
    """Raise ConfigError if a node cannot run with this configuration."""
    check_protection(config)
    _check_identity(config)
    _check_listeners(config)
    _check_log(config)
    _check_network(config)
    _check_groups(config)


def _require(held: bool, key: str, value: object, reason: str) -> None:
    if not held:
        raise ConfigError(key, None if value is None else str(value), reason, reason)


def _check_identity(config: "NodeConfig") -> None:
    broker_id = config.int("broker.id")
    _require(
        broker_id in (-1, config.node_id),
        "broker.id",
        broker_id,
        "You must set `node.id` to the same value as `broker.id`.",
    )


def _check_listeners(config: "NodeConfig") -> None:
    names = {listener.name for listener in config.listeners}
    controller_names = {name.upper() for name in config.controller_listener_names}
    if config.is_controller:
        _require(
            bool(names & controller_names),
            "controller.listener.names",
            ",".join(config.controller_listener_names),
            "controller.listener.names must contain at least one value appearing in the 'listeners' "
            "configuration when running the KRaft controller role",
        )
    else:
        _require(
            not names & controller_names,
            "controller.listener.names",
            ",".join(config.controller_listener_names),
            "controller.listener.names must not contain a value appearing in the 'listeners' "
            "configuration when running KRaft with just the broker role",
        )
    if not config.is_broker:
        _require(
            names <= controller_names,
            "listeners",
            ",".join(config.list("listeners")),
            "The listeners config must only contain KRaft controller listeners from "
            "controller.listener.names when process.roles=controller",
        )
        return
    for listener in config.advertised_listeners:
        _require(
            listener.host not in _UNROUTABLE,
            "advertised.listeners",
            str(listener),
            f"advertised.listeners cannot use the nonroutable meta-address {listener.host}. "
            "Use a routable IP address.",
        )
    _require(
        not ("inter.broker.listener.name" in config.raw and "security.inter.broker.protocol" in config.raw),
        "inter.broker.listener.name",
        config.get("inter.broker.listener.name"),
        "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
    )
    named = config.string("inter.broker.listener.name")
    _require(
        not named or named.upper() in config.listener_security_protocols,
        "inter.broker.listener.name",
        named,
        f"Listener with name {named} defined in inter.broker.listener.name not found in "
        "listener.security.protocol.map.",
    )
    broker_names = {listener.name for listener in config.advertised_listeners}
    inter_broker = config.inter_broker_listener_name
    _require(
        inter_broker in broker_names,
        "inter.broker.listener.name",
        inter_broker,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid "
        f"options based on currently configured listeners are {','.join(sorted(broker_names))}",
    )


def _check_log(config: "NodeConfig") -> None:
    _require(
        bool(config.log_dirs), "log.dirs", "", "At least one log directory must be defined via log.dirs."
    )
    for name in ("log.roll.ms", "log.roll.hours"):
        value = config.value(name)
        _require(
            value is None or config.int(name) >= 1,
            name,
            value,
            "log.roll.ms must be greater than or equal to 1",
        )
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        value = config.value(name)
        _require(
            value != 0,
            name,
            value,
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        )
    buffer_bytes, threads = config.int("log.cleaner.dedupe.buffer.size"), config.int("log.cleaner.threads")
    _require(threads >= 1, "log.cleaner.threads", threads, "Log cleaner threads should be at least 1")
    _require(
        buffer_bytes // threads > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size",
        buffer_bytes,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )
    codec = config.int("offsets.topic.compression.codec")
    _require(
        0 <= codec <= 4, "offsets.topic.compression.codec", codec, f"Unknown compression type id: {codec}"
    )


def _check_network(config: "NodeConfig") -> None:
    _require(
        config.int("replica.fetch.wait.max.ms") <= config.int("replica.socket.timeout.ms"),
        "replica.fetch.wait.max.ms",
        config.int("replica.fetch.wait.max.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
    )
    _require(
        config.int("replica.fetch.wait.max.ms") <= config.int("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms",
        config.int("replica.fetch.wait.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to "
        "prevent frequent changes in ISR",
    )
    queued_bytes = config.int("queued.max.request.bytes")
    _require(
        queued_bytes <= 0 or queued_bytes >= config.max_request_size,
        "queued.max.request.bytes",
        queued_bytes,
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    overrides = [item for item in config.string("max.connections.per.ip.overrides").split(",") if item]
    _require(
        config.int("max.connections.per.ip") != 0 or bool(overrides),
        "max.connections.per.ip",
        "0",
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    for item in overrides:
        host, _, count = item.rpartition(":")
        _require(
            bool(host.strip()) and count.strip().isdigit(),
            "max.connections.per.ip.overrides",
            item,
            f"'{item}' is not in the form {{hostName}}:{{maxConnections}}",
        )


def _check_groups(config: "NodeConfig") -> None:
    for name in config.list("group.consumer.assignors"):
        _require(
            name in ("uniform", "range"),
            "group.consumer.assignors",
            name,
            f"{name} is not a supported assignor; use uniform or range",
        )
    for setting in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
        own, low, high = (f"group.consumer.{bound}{setting}" for bound in ("", "min.", "max."))
        for larger, smaller, word in ((high, low, "greater"), (own, low, "greater"), (own, high, "less")):
            value, limit = config.int(larger), config.int(smaller)
            _require(
                value >= limit if word == "greater" else value <= limit,
                larger,
                value,
                f"{larger} must be {word} than or equal to {smaller}",
            )
    interval, session = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
    _require(
        config.int(interval) < config.int(session),
        interval,
        config.int(interval),
        f"{interval} must be less than {session}",
    )
