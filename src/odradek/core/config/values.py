"""Parses and checks single configuration values. Errors have Kafka's texts.

Pure: it knows types and ranges. It does not know the keys, nor where they are set.
"""

import re
from typing import Any, TypeAlias

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | None"

# Patterns stay text: re compiles and caches them at the first use, and most processes use few of them.
_DOUBLE = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?"
_REPLICA = r"\s*[0-9]+\s*:\s*[0-9]+\s*"
_ENDPOINT = r".*?\[?([0-9a-zA-Z\-._:%]+)\]?:([0-9]+)"
_BOUNDS = {
    "short": (-(1 << 15), (1 << 15) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
}


class ConfigError(Exception):
    """An invalid configuration: the key, the value, and the reason in Kafka's words."""

    def __init__(self, key: str, value: str | None, reason: str, message: str | None = None) -> None:
        super().__init__(message or f"Invalid value {value} for configuration {key}: {reason}")
        self.key = key
        self.value = value
        self.reason = reason


def parse_value(key: str, type_name: str, text: str) -> Value:
    """The typed value of a text, by Kafka's type names: boolean, short, int, long, double, list and texts."""
    stripped = text.strip()
    if type_name == "boolean":
        lowered = stripped.lower()
        if lowered not in ("true", "false"):
            raise ConfigError(key, text, "Expected value to be either true or false")
        return lowered == "true"
    if type_name in _BOUNDS:
        low, high = _BOUNDS[type_name]
        digits = stripped[1:] if stripped[:1] in ("+", "-") else stripped
        if not (digits.isascii() and digits.isdigit() and low <= int(stripped) <= high):
            raise ConfigError(key, text, f"Not a number of type {type_name.upper()}")
        return int(stripped)
    if type_name == "double":
        if not re.fullmatch(_DOUBLE, stripped):
            raise ConfigError(key, text, "Not a number of type DOUBLE")
        return float(stripped.rstrip("dDfF"))
    if type_name == "list":
        return tuple(dict.fromkeys(item.strip() for item in stripped.split(","))) if stripped else ()
    if type_name == "password":
        return stripped
    return text


def value_to_text(value: Value) -> str | None:
    """The text under which a typed value is reported."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return _java_double(value) if isinstance(value, float) else str(value)


def _java_double(value: float) -> str:
    """Double.toString: a plain decimal near 1, else the shortest mantissa with an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(text for digits in range(1, 18) if float(text := f"{value:.{digits}e}") == value)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa}E{int(exponent)}"


def check_value(key: str, check: list[Any] | None, value: Value) -> None:
    """Raise ConfigError when a typed value breaks its key's rule."""
    if check is not None:
        _CHECKS[check[0]](key, value, *check[1:])


def _range(key: str, value: Value, low: float | None, high: float | None) -> None:
    if not isinstance(value, (int, float)):
        return
    if low is not None and value < low:
        raise ConfigError(key, value_to_text(value), f"Value must be at least {low}")
    if high is not None and value > high:
        raise ConfigError(key, value_to_text(value), f"Value must be no more than {high}")


def _one_of(key: str, value: Value, allowed: list[str]) -> None:
    if value is not None and value not in allowed:
        raise ConfigError(key, str(value), f"String must be one of: {', '.join(allowed)}")


def _one_of_any_case(key: str, value: Value, allowed: list[str]) -> None:
    if value is not None and str(value).upper() not in allowed:
        raise ConfigError(key, str(value), f"String must be one of (case insensitive): {', '.join(allowed)}")


def _list(key: str, value: Value, allowed: list[str], empty_allowed: bool, null_allowed: bool) -> None:
    if value is None:
        if not null_allowed:
            reason = "values must not be null."
            raise ConfigError(key, None, reason, f"Configuration '{key}' {reason}")
        return
    assert isinstance(value, tuple)
    if not value and not empty_allowed:
        valid = f"[{', '.join(allowed)}]" if allowed else "any non-empty value"
        reason = f"must not be empty. Valid values include: {valid}"
        raise ConfigError(key, "", reason, f"Configuration '{key}' {reason}")
    for item in value:
        if not item:
            reason = "values must not be empty."
            raise ConfigError(key, ",".join(value), reason, f"Configuration '{key}' {reason}")
        if allowed:
            _one_of(key, item, allowed)


def _non_empty(key: str, value: Value) -> None:
    if value == "":
        raise ConfigError(key, "", "String must be non-empty")


def _non_null(key: str, value: Value) -> None:
    if value is None:
        raise ConfigError(key, None, "entry must be non null")


def _gzip_level(key: str, value: Value) -> None:
    assert isinstance(value, int)
    if value != -1 and not 1 <= value <= 9:
        raise ConfigError(key, str(value), "Value must be between 1 and 9 or equal to -1")


def _throttled_replicas(key: str, value: Value) -> None:
    assert isinstance(value, tuple)
    if value in ((), ("*",)) or all(re.fullmatch(_REPLICA, item) for item in value):
        return
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    reason = f"{key} must be the literal '*' or a list of replicas in the following format: {form}"
    raise ConfigError(key, f"[{', '.join(value)}]", reason)


def _voters(key: str, value: Value) -> None:
    assert isinstance(value, tuple)
    for item in value:
        node_id, at, endpoint = item.partition("@")
        if not at or not node_id.strip().isdigit() or not re.fullmatch(_ENDPOINT, endpoint):
            reason = "Each entry should be in the form `{id}@{host}:{port}`."
            raise ConfigError(key, item, reason, f"Invalid configuration value for {key}. {reason}")


def _bootstrap_servers(key: str, value: Value) -> None:
    assert isinstance(value, tuple)
    for item in value:
        if not re.fullmatch(_ENDPOINT, item):
            reason = f"Failed to parse host name from {item} for the configuration {key}."
            hint = 'Each entry should be in the form "{host}:{port}"'
            raise ConfigError(key, item, reason, f"{reason} {hint}")


_CHECKS: dict[str, Any] = {
    "range": _range,
    "one_of": _one_of,
    "one_of_any_case": _one_of_any_case,
    "list": _list,
    "non_empty": _non_empty,
    "non_null": _non_null,
    "gzip_level": _gzip_level,
    "throttled_replicas": _throttled_replicas,
    "voters": _voters,
    "bootstrap_servers": _bootstrap_servers,
}
