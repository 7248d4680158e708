"""The levels of this node's loggers, described and changed as configs of a BROKER_LOGGER resource.

A changed level lasts until the node stops. In Apache Kafka that is the end of the process. Nodes in the same
process share its loggers.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from odradek.controller.configs import APPEND, DELETE, SET, SUBTRACT, check_config_names, check_values_given
from odradek.core.config.describe import ConfigEntry, ConfigSource
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import FEW, Paced

ROOT = "root"
_PACKAGE = "odradek"
_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_UNKNOWN_TYPE = 0


def describe_loggers(names: Collection[str]) -> Iterator[ConfigEntry]:
    """The current level of each named logger, or of all loggers. Unknown names are omitted."""
    for name, logger in sorted(_loggers().items()):
        if names and name not in names:
            continue
        level = _name_of(logger.getEffectiveLevel())
        yield ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER, False, False, _UNKNOWN_TYPE, ())


class LogLevels:
    """The levels that clients of this node have changed."""

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: dict[logging.Logger, int] = {}

    def change(self, changes: Sequence[Any], *, validate_only: bool) -> Paced[None]:
        """Set levels, or reset loggers to the level of their parents (DELETE): all changes or none."""
        yield from check_config_names(changes)
        yield from check_values_given(changes)
        levels = {}
        for change in changes:
            yield 2 * FEW
            levels[change.name] = _level_wanted(change)
        if validate_only:
            return
        for name, level in levels.items():
            logger = _find(name)
            assert logger is not None
            self._before.setdefault(logger, logger.level)
            logger.setLevel(level)
            yield 2 * FEW

    def restore(self) -> None:
        """Restore the original levels."""
        for logger, level in self._before.items():
            logger.setLevel(level)
        self._before.clear()


def _level_wanted(change: Any) -> int:
    operation, name = change.config_operation, change.name
    if operation in (APPEND, SUBTRACT):
        verb = "APPEND" if operation == APPEND else "SUBTRACT"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{verb} operation is not allowed for the BROKER_LOGGER resource"
        )
    if operation not in (SET, DELETE):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Apache's answer to an unknown operation
    if _find(name) is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE:
        if name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
            )
        return logging.NOTSET
    if change.value not in _LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(_LEVELS))}",
        )
    return _LEVELS[change.value]


def _loggers() -> dict[str, logging.Logger]:
    found = {name: _find(name) for name in (ROOT, *logging.root.manager.loggerDict)}
    return {name: logger for name, logger in found.items() if logger is not None}


def _find(name: str) -> logging.Logger | None:
    """The root logger, a logger in use, or a parent of one: its level applies to all below."""
    if name == ROOT:
        return logging.root
    if name != _PACKAGE and not name.startswith(_PACKAGE + "."):
        return None
    return logging.getLogger(name) if name in logging.root.manager.loggerDict else None


def _name_of(level: int) -> str:
    return next((name for name, value in _LEVELS.items() if level <= value), "FATAL")
