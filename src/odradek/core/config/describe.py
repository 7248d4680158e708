"""What DescribeConfigs reports: current values, the source of each, and its synonyms. Pure."""

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from odradek.core.config.keys import (
    BROKER_KEYS,
    GROUP_KEYS,
    LISTENER_PREFIX,
    TOPIC_KEYS,
    ConfigKey,
    broker_key,
)
from odradek.core.config.node import NodeConfig
from odradek.core.config.topic import topic_value
from odradek.core.config.values import value_to_text


class ConfigSource(IntEnum):
    """Where a value comes from, by DescribeConfigs' numbers."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


# DescribeConfigs' numbers for Kafka's type names.
CONFIG_TYPES: Mapping[str, int] = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}
_UNKNOWN_TYPE = 0


class Synonym(NamedTuple):
    """One setting that can define the value. Synonyms are listed by precedence."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One line of a DescribeConfigs answer. A sensitive value is never shown."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: int
    synonyms: tuple[Synonym, ...]


def describe_topic(
    node: NodeConfig, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """The configuration of a topic with these overrides. `names` None or empty means all keys."""
    for name, key in TOPIC_KEYS.items():
        if key.internal or (names and name not in names):
            continue
        text = value_to_text(topic_value(name, node, overrides))
        shown = None if key.sensitive else text
        synonyms = _synonyms(node, key.synonyms) if key.synonyms else ()
        if name in overrides:
            synonyms = (Synonym(name, shown, ConfigSource.DYNAMIC_TOPIC), *synonyms)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        yield ConfigEntry(name, shown, source, False, key.sensitive, CONFIG_TYPES[key.type], synonyms)


def describe_group(
    node: NodeConfig, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """The configuration of a group with these overrides. `names` None or empty means all keys."""
    for name, key in GROUP_KEYS.items():
        if names and name not in names:
            continue
        synonyms = _synonyms(node, key.synonyms) if key.synonyms else ()
        if not synonyms:
            synonyms = (Synonym(name, key.default, ConfigSource.DEFAULT),)
        if name in overrides:
            synonyms = (Synonym(name, overrides[name], ConfigSource.GROUP), *synonyms)
        first, type_ = synonyms[0], CONFIG_TYPES[key.type]
        yield ConfigEntry(name, first.value, first.source, False, False, type_, synonyms)


def describe_broker(node: NodeConfig, names: Collection[str] | None = None) -> Iterator[ConfigEntry]:
    """The configuration of this broker. Values of unknown settings are hidden, as in Apache Kafka."""
    listed = dict.fromkeys(name for name, key in BROKER_KEYS.items() if not key.internal)
    listed.update(dict.fromkeys([*node.raw, *node.dynamic_default, *node.dynamic_broker]))
    return (_broker_entry(node, name, False) for name in listed if not names or name in names)


def describe_broker_default(node: NodeConfig, names: Collection[str] | None = None) -> Iterator[ConfigEntry]:
    """What was set at run time for all brokers."""
    listed = [name for name in node.dynamic_default if not names or name in names]
    return (_broker_entry(node, name, True) for name in listed)


def _broker_entry(node: NodeConfig, name: str, only_default: bool) -> ConfigEntry:
    key = broker_key(name)
    sensitive = key is None or key.sensitive
    text = node.dynamic_default[name] if only_default else node.text(name)
    synonyms = _synonyms(node, _broker_names(name, key), sensitive, described=name)
    if only_default:
        synonyms = tuple(s for s in synonyms if s.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
    return ConfigEntry(
        name,
        None if sensitive else text,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        key is None or key.read_only or name.startswith(LISTENER_PREFIX),
        sensitive,
        _UNKNOWN_TYPE if key is None else CONFIG_TYPES[key.type],
        synonyms,
    )


def _broker_names(name: str, key: ConfigKey | None) -> tuple[str, ...]:
    if key is None:
        return (name,)
    return (name, key.name) if name.startswith(LISTENER_PREFIX) else key.synonyms


def _synonyms(
    node: NodeConfig, names: tuple[str, ...], sensitive: bool = False, described: str | None = None
) -> tuple[Synonym, ...]:
    """The settings of all layers under the given names, starting at the first one of the described name."""
    found = []
    layers = (
        (node.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (node.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (node.raw, ConfigSource.STATIC_BROKER),
    )
    for layer, source in layers:
        found += [Synonym(name, layer[name], source) for name in names if name in layer]
    for name in names:
        default = node.default(name)
        if default is not None:
            found.append(Synonym(name, default, ConfigSource.DEFAULT))
    first = described or names[0]
    start = next((i for i, synonym in enumerate(found) if synonym.name == first), len(found))
    return tuple(s._replace(value=None) if sensitive else s for s in found[start:])
