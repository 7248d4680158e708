"""Logs settings, features and records that have no effect in Odradek.

It covers settings of the file and the command line, those in the metadata log, and later changes.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping

from odradek.core.configs import (
    GROUP_KEYS,
    TOPIC_KEYS,
    Inert,
    NodeConfig,
    inert_dynamic,
    inert_of,
    inert_static,
)
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import (
    CLUSTER_DEFAULT,
    EMPTY_IMAGE,
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from odradek.runtime.slices import STEP, Paced

_log = logging.getLogger(__name__)

# By the first item of their identity in the image.
_KEPT = {
    "quota": "client quotas",
    "acl": "ACLs",
    "scram": "SCRAM credentials",
    "token": "delegation tokens",
    "opaque": "records of unknown types",
}
_UNSERVED_FEATURES = {"share.version": "share groups", "streams.version": "streams groups"}
_NAMED_RESOURCES = 3


class NoEffect:
    """A subscriber of the metadata. Its first delta is the whole image, later ones are the changes."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config

    def on_delta(self, delta: MetadataDelta) -> Paced[None]:
        found: list[tuple[str, Inert]] = []
        for kind, name in delta.changed_configs:
            found += self._stored(delta, kind, name)
            yield 2 * STEP
        if delta.previous is EMPTY_IMAGE:
            found.insert(0, ("", inert_static(self._config)))
        _tell_settings(found)
        self._tell_features(delta.previous.features, delta.image.features)
        if delta.image.kept is not delta.previous.kept:
            new = Counter(identity[0] for identity in delta.image.kept if identity not in delta.previous.kept)
            if new:
                counts = ", ".join(f"{count} {_KEPT[kind]}" for kind, count in new.items())
                _log.warning("Stored in the metadata log but not enforced: %s", counts)

    def _stored(self, delta: MetadataDelta, kind: int, name: str) -> Iterable[tuple[str, Inert]]:
        before, now = delta.previous.config(kind, name), delta.image.config(kind, name)
        changed = {key: value for key, value in now.items() if before.get(key) != value}
        if kind == RESOURCE_BROKER:
            if name == CLUSTER_DEFAULT:
                yield "all brokers", inert_dynamic(changed, self._config)
            elif name == str(self._config.node_id):
                yield f"broker {name}", inert_dynamic(changed, self._config)
        elif kind == RESOURCE_TOPIC:
            yield f"topic {name}", inert_of(changed, TOPIC_KEYS)
        elif kind == RESOURCE_GROUP:
            yield f"group {name}", inert_of(changed, GROUP_KEYS)
        elif kind == RESOURCE_CLIENT_METRICS:
            yield f"client metrics {name}", inert_of(changed, {})

    @staticmethod
    def _tell_features(before: Mapping[str, int], now: Mapping[str, int]) -> None:
        for name, what in _UNSERVED_FEATURES.items():
            if now.get(name, 0) > before.get(name, 0):
                _log.warning("%s=%d is finalized, but %s are not supported yet", name, now[name], what)


def _tell_settings(found: Iterable[tuple[str, Inert]]) -> None:
    warned: dict[str, list[str]] = {}
    told: dict[str, list[str]] = {}
    for where, inert in found:
        for keys, named in ((inert.warned, warned), (inert.told, told)):
            for key in keys:
                named.setdefault(key, []).append(where)
    if warned:
        _log.warning(
            "Settings without effect: %s (all such keys: odradek cluster info --unsupported)", _listed(warned)
        )
    if told:
        _log.info(
            "Settings without effect (defaults, or sizes of Apache Kafka's threads and buffers): %s",
            _listed(told),
        )


def _listed(settings: Mapping[str, list[str]]) -> str:
    """Each key once, with its resources, unless there are many."""
    shown = []
    for key, places in settings.items():
        named = [place for place in places if place]
        if len(named) > _NAMED_RESOURCES:
            named = [*named[:_NAMED_RESOURCES], f"{len(named) - _NAMED_RESOURCES} more"]
        shown.append(f"{key} ({', '.join(named)})" if named else key)
    return ", ".join(shown)
