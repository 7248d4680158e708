"""Checks topic names: allowed characters, length, and collisions. Pure."""

from odradek.core.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH = 249
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION with Kafka's text for an invalid name."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL.issuperset(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def why_unknown(name: str) -> ErrorCode:
    """The error for a topic that does not exist: UNKNOWN_TOPIC_OR_PARTITION, or an invalid name."""
    try:
        check_topic_name(name)
    except KafkaError as e:
        return e.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def collision_key(name: str) -> str | None:
    """Names with the same key would share metrics, because metrics replace '.' with '_'. Most names have no
    key."""
    return name.replace(".", "_") if "." in name or "_" in name else None
