"""The configuration of one node: file and command line, dynamic changes, and defaults.

Pure: texts and mappings in, typed values out. topic.py has the configuration of topics.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from odradek.core.config.keys import (
    BROKER_KEYS,
    LISTENER_PREFIX,
    broker_key,
    is_known,
    nearest,
)
from odradek.core.config.listeners import Listener, parse_listeners, parse_protocol_map
from odradek.core.config.rules import check_node
from odradek.core.config.values import ConfigError, Value, value_to_text

# The typed getters below carry the names of the built-in types and hide them inside the class.
_Int: TypeAlias = int
_Bool: TypeAlias = bool
_Float: TypeAlias = float

_NOTHING: Mapping[str, str] = MappingProxyType({})
_SECURITY_PROTOCOLS_NEEDING_KEYS = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})


# Defaults that differ from Apache Kafka's.
_DEFAULTS = {
    "controller.quorum.append.linger.ms": "0",  # records share the fsync that is under way without waiting
    "group.initial.rebalance.delay.ms": "0",  # the first member of a group does not wait
    "replica.socket.receive.buffer.bytes": "-1",  # the system's buffer grows with the load: half the CPU time
    # A start replays the whole log, and compaction never touches the last segment.
    "transaction.state.log.segment.bytes": str(1 << 20),
    "transaction.two.phase.commit.enable": "true",  # exactly-once pipelines use two-phase commit
}
# A quorum of one has no second replica.
_DEFAULTS_ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def node_defaults(
    data_dir: str = "./odradek-data", host: str = "127.0.0.1", port: _Int = 9092
) -> dict[str, str]:
    """Defaults for a node without a file: one combined broker and controller."""
    shown = f"[{host}]" if ":" in host else host
    return {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://{shown}:{port},CONTROLLER://{shown}:0",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data_dir,
    }


class NodeConfig:
    """Static and dynamic configuration of one node, typed, with Kafka's defaults and our own."""

    __slots__ = (
        "_defaults",
        "_dynamic_broker",
        "_dynamic_default",
        "_parsed",
        "derived",
        "raw",
    )

    def __init__(self, raw: Mapping[str, str]) -> None:
        """Take explicitly set values as they are. For a file, use `from_sources`."""
        self.raw: Mapping[str, str] = MappingProxyType(dict(raw))
        self._dynamic_broker: Mapping[str, str] = _NOTHING
        self._dynamic_default: Mapping[str, str] = _NOTHING
        self._parsed: dict[str, Value] = {}
        # Values that other code computes from this configuration. Cleared when it changes.
        self.derived: dict[str, object] = {}
        self._defaults: Mapping[str, str] = _DEFAULTS
        if self.is_quorum_of_one:
            self._defaults = _DEFAULTS | _DEFAULTS_ALONE
        for name, text in self.raw.items():
            key = broker_key(name)
            if key is not None:
                key.parse(text)
        check_node(self)

    @classmethod
    def from_sources(
        cls, file: Mapping[str, str], overrides: Mapping[str, str]
    ) -> "tuple[NodeConfig, Sequence[str]]":
        """The configuration from a file and `key=value` overrides, with warnings about the file.

        An unknown key is a warning in a file and an error in the overrides.
        """
        warnings = []
        for name in file:
            if not is_known(name):
                shown = name or f"={file[name]}"
                warnings.append(f"Ignoring the unknown configuration {shown}{_suggestion(name)}")
        for name, value in overrides.items():
            if not is_known(name):
                reason = f"Unknown configuration {name}{_suggestion(name)}"
                raise ConfigError(name, value, reason, reason)
        raw = {**file, **overrides}
        given = dict(raw)
        if "node.id" not in raw and "broker.id" in raw:
            given["node.id"] = raw["broker.id"]
        for name, value in node_defaults().items():
            if name == "log.dirs" and "log.dir" in raw:
                continue
            given.setdefault(name, value)
        given.setdefault("broker.id", given["node.id"])
        return cls(given), warnings

    # Current values

    def get(self, name: str) -> str | None:
        """The current text: dynamic for this broker, dynamic for all brokers, static, or the default."""
        for layer in (self._dynamic_broker, self._dynamic_default, self.raw, self._defaults):
            if name in layer:
                return layer[name]
        key = BROKER_KEYS.get(name)
        return None if key is None else key.default

    def default(self, name: str) -> str | None:
        """The value when nothing is set: Kafka's default, or ours where it differs."""
        if name in self._defaults:
            return self._defaults[name]
        key = BROKER_KEYS.get(name)
        return None if key is None else key.default

    def value(self, name: str) -> Value:
        """The current typed value, or None."""
        try:
            return self._parsed[name]
        except KeyError:
            pass
        key = broker_key(name)
        if key is None:
            raise KeyError(f"no such configuration: {name}")
        text = self.get(name)
        if text is None and name.startswith(LISTENER_PREFIX):
            text = self.get(key.name)
        value = None if text is None else key.parse(text)
        self._parsed[name] = value
        return value

    def text(self, name: str) -> str | None:
        """The current value as DescribeConfigs reports it."""
        return value_to_text(self.value(name)) if broker_key(name) else self.get(name)

    # Dynamic configuration

    @property
    def dynamic_broker(self) -> Mapping[str, str]:
        """What was set at run time for this broker."""
        return self._dynamic_broker

    @property
    def dynamic_default(self) -> Mapping[str, str]:
        """What was set at run time for all brokers."""
        return self._dynamic_default

    def set_dynamic(self, broker: Mapping[str, str], default: Mapping[str, str]) -> Sequence[str]:
        """Replace the dynamic configuration. Returns the sorted names whose current value changed."""
        names = sorted({*broker, *default, *self._dynamic_broker, *self._dynamic_default})
        before = [self.get(name) for name in names]
        self._dynamic_broker = MappingProxyType(dict(broker))
        self._dynamic_default = MappingProxyType(dict(default))
        self._parsed.clear()
        self.derived.clear()
        return [name for name, old in zip(names, before, strict=True) if self.get(name) != old]

    # The node itself

    @property
    def node_id(self) -> _Int:
        return self.int("node.id")

    @property
    def process_roles(self) -> tuple[str, ...]:
        return self.list("process.roles")

    @property
    def is_broker(self) -> _Bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> _Bool:
        return "controller" in self.process_roles

    @property
    def is_quorum_of_one(self) -> _Bool:
        """Whether this node is the only controller."""
        voters = self.list("controller.quorum.voters")
        servers = self.list("controller.quorum.bootstrap.servers")
        return self.is_controller and len(voters) <= 1 and len(servers) <= 1

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.list("log.dirs") or self.list("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        return self.string("metadata.log.dir") or self.log_dirs[0]

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        return self.list("controller.listener.names")

    @property
    def listener_security_protocols(self) -> Mapping[str, str]:
        """Security protocols by listener. Without an explicit map, controller listeners are plain text."""
        protocols = parse_protocol_map(self.get("listener.security.protocol.map") or "")
        if "listener.security.protocol.map" not in self.raw:
            names = [item.partition("://")[0].upper() for item in self.list("listeners")]
            if not _SECURITY_PROTOCOLS_NEEDING_KEYS.intersection([*names, *self.controller_listener_names]):
                for name in self.controller_listener_names:
                    protocols.setdefault(name.upper(), "PLAINTEXT")
        return protocols

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Every endpoint that this node binds, of broker and controller."""
        return parse_listeners(self.list("listeners"), self.listener_security_protocols)

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        controllers = {name.upper() for name in self.controller_listener_names}
        return tuple(listener for listener in self.listeners if listener.name not in controllers)

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        controllers = {name.upper() for name in self.controller_listener_names}
        return tuple(listener for listener in self.listeners if listener.name in controllers)

    @property
    def advertised_controller_listeners(self) -> tuple[Listener, ...]:
        """The endpoints that other nodes get; by default the controller endpoints that the node binds."""
        given = parse_listeners(self.list("advertised.listeners"), self.listener_security_protocols)
        advertised = {listener.name: listener for listener in given}
        return tuple(advertised.get(bound.name, bound) for bound in self.controller_listeners)

    @property
    def advertised_listeners(self) -> tuple[Listener, ...]:
        """The endpoints that clients get; by default the broker endpoints that the node binds."""
        advertised = self.list("advertised.listeners")
        if not advertised:
            return self.broker_listeners
        controllers = {name.upper() for name in self.controller_listener_names}
        parsed = parse_listeners(advertised, self.listener_security_protocols)
        return tuple(listener for listener in parsed if listener.name not in controllers)

    @property
    def inter_broker_listener_name(self) -> str:
        return (
            self.string("inter.broker.listener.name") or self.string("security.inter.broker.protocol")
        ).upper()

    # Often used settings

    @property
    def num_partitions(self) -> _Int:
        return self.int("num.partitions")

    @property
    def default_replication_factor(self) -> _Int:
        return self.int("default.replication.factor")

    @property
    def auto_create_topics_enable(self) -> _Bool:
        return self.bool("auto.create.topics.enable")

    @property
    def max_request_size(self) -> _Int:
        return self.int("socket.request.max.bytes")

    # Typed getters

    def string(self, name: str) -> str:
        """A text value; empty if there is none."""
        return value_to_text(self.value(name)) or ""

    def int(self, name: str) -> _Int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is not an integer: {value!r}"
        return value

    def float(self, name: str) -> _Float:
        value = self.value(name)
        assert isinstance(value, float), f"{name} is not a number: {value!r}"
        return value

    def bool(self, name: str) -> _Bool:
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is not a boolean: {value!r}"
        return value

    def list(self, name: str) -> tuple[str, ...]:
        """The items of a list; empty if there is none."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), f"{name} is not a list: {value!r}"
        return value or ()


def _suggestion(name: str) -> str:
    close = nearest(name)
    return f"; did you mean {close}?" if close else ""
