"""Client properties by their Java and librdkafka names, and which source wins. Pure: mappings in and out.

`-b` wins over `-X key=value`, that over ODRADEK_<KEY> in the environment, that over the default.
"""

from collections.abc import Mapping, Sequence

from odradek.core.config.listeners import why_unsupported

DEFAULTS: Mapping[str, str] = {
    "bootstrap.servers": "localhost:9092",
    "client.id": "odradek-cli",
    "request.timeout.ms": "30000",
    "isolation.level": "read_uncommitted",
    "acks": "all",
    "compression.type": "none",
    "security.protocol": "PLAINTEXT",
}
# librdkafka's names, and other spellings in use, for the same things.
_SYNONYMS = {
    "metadata.broker.list": "bootstrap.servers",
    "socket.timeout.ms": "request.timeout.ms",
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
}
_ALLOWED = {
    "isolation.level": ("read_uncommitted", "read_committed"),
    "acks": ("all", "-1", "0", "1"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
}
_PREFIX = "ODRADEK_"


def resolve_properties(
    bootstrap_servers: str | None, settings: Sequence[str], environment: Mapping[str, str]
) -> dict[str, str]:
    """The properties in force; raises ValueError for what is unknown or malformed."""
    properties = dict(DEFAULTS)
    for name in [*DEFAULTS, *_SYNONYMS]:
        value = environment.get(_PREFIX + name.upper().replace(".", "_"))
        if value is not None:
            properties[_SYNONYMS.get(name, name)] = value
    for setting in settings:
        name, equals, value = setting.partition("=")
        name = name.strip()
        if not equals:
            raise ValueError(f"-X {setting}: not in the form key=value")
        canonical = _SYNONYMS.get(name, name)
        family = name.partition(".")[0].upper()
        if family in ("SSL", "SASL"):
            raise ValueError(f"-X {name}: {why_unsupported(family)}")
        if canonical not in DEFAULTS:
            raise ValueError(f"-X {name}: unknown property{_suggestion(name)}")
        properties[canonical] = value.strip()
    if bootstrap_servers is not None:
        properties["bootstrap.servers"] = bootstrap_servers
    for name, allowed in _ALLOWED.items():
        if properties[name] not in allowed:
            raise ValueError(f"{name}={properties[name]}: one of {', '.join(allowed)}")
    problem = why_unsupported(properties["security.protocol"])
    if problem is not None:
        raise ValueError(f"security.protocol: {problem}")
    if not properties["request.timeout.ms"].isdigit():
        raise ValueError(
            f"request.timeout.ms={properties['request.timeout.ms']}: not a number of milliseconds"
        )
    return properties


def parse_pairs(option: str, settings: Sequence[str]) -> dict[str, str]:
    """`key=value` arguments of an option as a mapping."""
    pairs = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{option} {setting}: not in the form key=value")
        pairs[name.strip()] = value
    return pairs


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*DEFAULTS, *_SYNONYMS], n=1)
    return f"; did you mean {close[0]}?" if close else f" (one of {', '.join(DEFAULTS)})"
