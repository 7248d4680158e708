"""This node's loggers as the configs of a BROKER_LOGGER resource: their levels, described and changed.

A level lasts until the node stops, as in Apache Kafka, where that is the end of the process. Loggers are the
process's: nodes that share one share them.
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
    """The level in force of each logger; no names: of all. A name that no logger has is left out."""
    for name, logger in sorted(_loggers().items()):
        if names and name not in names:
            continue
        level = _name_of(logger.getEffectiveLevel())
        yield ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER, False, False, _UNKNOWN_TYPE, ())


class LogLevels:
    """The levels that this node's clients have changed."""

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: dict[logging.Logger, int] = {}

    def change(self, changes: Sequence[Any], *, validate_only: bool) -> Paced[None]:
        """Set levels, or let loggers have those of their parents (DELETE): all of the changes, or none."""
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
        """Leave the process's loggers as they were."""
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
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache answers an operation it does not know
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
    """The root, a logger that something logs with, or a parent of one: its level counts for all below."""
    if name == ROOT:
        return logging.root
    if name != _PACKAGE and not name.startswith(_PACKAGE + "."):
        return None
    return logging.getLogger(name) if name in logging.root.manager.loggerDict else None


def _name_of(level: int) -> str:
    return next((name for name, value in _LEVELS.items() if level <= value), "FATAL")
