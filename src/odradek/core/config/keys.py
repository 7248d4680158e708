"""The configuration keys of Kafka: name, type, default, rule, and whether the key acts in Odradek.

The table is definitions.json, taken from Apache Kafka 4.3.1; the few keys of our own are here. Current values
are in node.py and topic.py.
"""

import json
from collections.abc import Iterable, Mapping
from pkgutil import get_data
from typing import Any, NamedTuple

from odradek.core.config.acting import ACTING_BROKER_KEYS, ACTING_GROUP_KEYS, ACTING_TOPIC_KEYS
from odradek.core.config.values import Value, check_value, parse_value

# A broker value may be set in larger units: the names by precedence, with milliseconds per unit.
TIME_FAMILIES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "log.retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "log.flush.interval.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}
_FAMILY_OF = {name: tuple(n for n, _ in names) for names in TIME_FAMILIES.values() for name, _ in names}

LISTENER_PREFIX = "listener.name."
# Keys with these prefixes belong to plug-ins. They count as known although they are not listed.
OPEN_PREFIXES = (LISTENER_PREFIX, "rsm.config.", "rlmm.config.", "config.providers.")
# Apache Kafka's own authorizer reads these; the broker itself does not define them.
AUTHORIZER_KEYS = frozenset({"allow.everyone.if.no.acl.found", "super.users"})


class ConfigKey(NamedTuple):
    """One key: its type in Kafka's words, its default as text (None: no default), and its rule."""

    name: str
    type: str
    default: str | None
    read_only: bool
    per_broker: bool
    sensitive: bool
    internal: bool
    acts: bool
    synonyms: tuple[str, ...]
    check: list[Any] | None

    def parse(self, text: str) -> Value:
        """The typed value of a text; raises ConfigError where Kafka would."""
        value = parse_value(self.name, self.type, text)
        check_value(self.name, self.check, value)
        return value


_QUICK_FENCING = "odradek.quick.fencing"
_OWN_KEYS = (
    ConfigKey(_QUICK_FENCING, "boolean", "true", True, False, False, True, True, (_QUICK_FENCING,), None),
)
"""Keys that only Odradek knows. They begin with its name, and are described where they are set."""


def _load() -> tuple[dict[str, ConfigKey], dict[str, ConfigKey], dict[str, ConfigKey]]:
    raw = json.loads(get_data(__package__, "definitions.json") or b"")
    acting_defaults = {
        name
        for topic_name, entry in raw["topic"].items()
        if topic_name in ACTING_TOPIC_KEYS and "synonym" in entry
        for name in _FAMILY_OF.get(entry["synonym"], (entry["synonym"],))
    }
    broker = {
        name: ConfigKey(
            name,
            entry["type"],
            entry.get("default"),
            "dynamic" not in entry,
            entry.get("dynamic") == "per-broker",
            entry.get("sensitive", False),
            entry.get("internal", False),
            name in ACTING_BROKER_KEYS or name in acting_defaults,
            _FAMILY_OF.get(name, (name,)),
            entry.get("check"),
        )
        for name, entry in raw["broker"].items()
    }
    broker.update((key.name, key) for key in _OWN_KEYS)
    topic, group = (
        {
            name: ConfigKey(
                name,
                entry["type"],
                entry.get("default"),
                False,
                False,
                entry.get("sensitive", False),
                entry.get("internal", False),
                name in acting,
                broker[entry["synonym"]].synonyms if "synonym" in entry else (),
                entry.get("check"),
            )
            for name, entry in raw[kind].items()
        }
        for kind, acting in (("topic", ACTING_TOPIC_KEYS), ("group", ACTING_GROUP_KEYS))
    )
    return broker, topic, group


BROKER_KEYS: Mapping[str, ConfigKey]
TOPIC_KEYS: Mapping[str, ConfigKey]
GROUP_KEYS: Mapping[str, ConfigKey]
BROKER_KEYS, TOPIC_KEYS, GROUP_KEYS = _load()


def broker_key(name: str) -> ConfigKey | None:
    """The key of a broker setting; `listener.name.NAME.key` stands for the key it overrides."""
    if name.startswith(LISTENER_PREFIX):
        parts = name.split(".", 3)
        return BROKER_KEYS.get(parts[3]) if len(parts) == 4 else None
    return BROKER_KEYS.get(name)


def is_known(name: str) -> bool:
    return name in BROKER_KEYS or name in AUTHORIZER_KEYS or name.startswith(OPEN_PREFIXES)


def nearest(name: str, among: Iterable[str] | None = None) -> str | None:
    """The key most similar to a misspelt one, or None. Searches `among`, or all known keys."""
    from difflib import get_close_matches

    keys = [*BROKER_KEYS, *TOPIC_KEYS] if among is None else list(among)
    close = get_close_matches(name.replace("_", ".").lower(), keys, n=1, cutoff=0.8)
    return close[0] if close else None
