"""Finds settings that have no effect in Odradek. Pure.

The node logs each one: as a warning, or as information if ignoring it changes nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from odradek.core.config.acting import ACTING_LISTENER_KEYS
from odradek.core.config.keys import BROKER_KEYS, LISTENER_PREFIX, ConfigKey, broker_key, is_known
from odradek.core.config.listeners import SUPPORTED_PROTOCOL, parse_protocol_map
from odradek.core.config.node import NodeConfig
from odradek.core.config.values import ConfigError

# Sizes of threads, buffers and queues that only Apache Kafka has.
_SIZES = frozenset(
    {
        "background.threads",
        "delete.records.purgatory.purge.interval.requests",
        "fetch.purgatory.purge.interval.requests",
        "group.coordinator.background.threads",
        "group.coordinator.cached.buffer.max.bytes",
        "group.coordinator.threads",
        "num.io.threads",
        "num.network.threads",
        "num.replica.alter.log.dirs.threads",
        "producer.purgatory.purge.interval.requests",
        "queued.max.requests",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.manager.thread.pool.size",
        "remote.log.reader.threads",
        "share.coordinator.cached.buffer.max.bytes",
        "share.coordinator.load.buffer.size",
        "share.coordinator.threads",
        "share.fetch.purgatory.purge.interval.requests",
        "socket.listen.backlog.size",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
    }
)
# The node reads them at its start, before it knows the dynamic settings.
_ONLY_STATIC = frozenset({"listeners", "listener.security.protocol.map"})

Setting = tuple[str, str]


class Inert(NamedTuple):
    """Names of settings without effect: those to warn about, and those that change nothing (`told`)."""

    warned: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


def inert_static(config: NodeConfig) -> Inert:
    """Settings of the file and the command line. Unknown keys are reported when these are read."""
    found = [(name, text) for name, text in config.raw.items() if is_known(name) and not _acts(name)]
    inert = _sorted_out(found, broker_key, config.default)
    return inert._replace(warned=(*inert.warned, *_inert_parts(config)))


def inert_dynamic(settings: Mapping[str, str], config: NodeConfig) -> Inert:
    """Dynamic settings of one broker, or of all brokers."""
    found = [(k, v) for k, v in settings.items() if k in _ONLY_STATIC or not _acts(k)]
    return _sorted_out(found, broker_key, config.default)


def inert_of(settings: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> Inert:
    """Settings of one topic or of one group."""
    found = [(k, v) for k, v in settings.items() if k not in keys or not keys[k].acts]
    return _sorted_out(found, keys.get, lambda name: None)


def _acts(name: str) -> bool:
    """Whether a broker setting acts. Few settings of a single listener do."""
    if name.startswith(LISTENER_PREFIX):
        key = broker_key(name)
        return key is not None and key.name in ACTING_LISTENER_KEYS
    key = BROKER_KEYS.get(name)
    return key is not None and key.acts


def _sorted_out(
    found: list[Setting], key_of: Callable[[str], ConfigKey | None], default: Callable[[str], str | None]
) -> Inert:
    told = []
    for name, text in found:
        key = key_of(name)
        if key is not None and (key.name in _SIZES or _is_one_of(key, text, key.default, default(name))):
            told.append(name)
    return Inert(tuple(sorted({name for name, _ in found}.difference(told))), tuple(sorted(told)))


def _is_one_of(key: ConfigKey, text: str, *defaults: str | None) -> bool:
    try:
        return key.parse(text) in [key.parse(default) for default in defaults if default is not None]
    except ConfigError:
        return False  # stored by a version with other rules


def _inert_parts(config: NodeConfig) -> Iterator[str]:
    """Parts of values that have no effect although the setting acts, unless they are in its default."""
    key = "listener.security.protocol.map"
    usual = parse_protocol_map(BROKER_KEYS[key].default or "")
    for name, protocol in parse_protocol_map(config.raw.get(key, "")).items():
        if protocol not in (SUPPORTED_PROTOCOL, usual.get(name)):
            yield f"{key} ({name}:{protocol})"
    key = "group.coordinator.rebalance.protocols"
    for protocol in config.list(key):
        if protocol == "share":  # the default names streams
            yield f"{key} ({protocol})"
