"""What a pipeline is: a file pipeline.toml that names its sources, its transform, its sinks. Pure, but for
reading the file.

    name = "shouting"
    checkpoint = "checkpoint"
    trigger = "1s"                  # or "available-now"
    transform = "transform.py"      # or transform.sql

    [cluster]
    "kafka.bootstrap.servers" = "localhost:9092"

    [sources.orders]
    subscribe = "orders"

    [sinks.shouted]
    topic = "shouted"
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

FILE = "pipeline.toml"
AVAILABLE_NOW = "available-now"
_KEYS = ("name", "checkpoint", "trigger", "transform", "cluster", "sources", "sinks", "spark")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
_OUTPUT_MODES = ("append", "update", "complete")


class SpecError(ValueError):
    """The file cannot be meant so."""


@dataclass(frozen=True)
class Sink:
    options: Mapping[str, str]
    output_mode: str


@dataclass(frozen=True)
class PipelineSpec:
    name: str
    folder: Path
    checkpoint: str
    trigger: Mapping[str, Any]
    """As DataStreamWriter.trigger takes it."""
    transform: Path
    cluster: Mapping[str, str]
    sources: Mapping[str, Mapping[str, str]]
    sinks: Mapping[str, Sink]
    spark: Mapping[str, str]

    def checkpoint_of(self, sink: str) -> str:
        return f"{self.checkpoint}/{sink}"

    def group_of(self, sink: str) -> str:
        return f"{self.name}.{sink}"


def load(path: Path) -> PipelineSpec:
    """The spec in a file, or in a folder that has one."""
    path = path / FILE if path.is_dir() else path
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise SpecError(f"there is no {path}") from None
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise SpecError(f"{path}: {e}") from None
    try:
        return parse(given, path.parent)
    except SpecError as e:
        raise SpecError(f"{path}: {e}") from None


def parse(given: Mapping[str, Any], folder: Path) -> PipelineSpec:
    _check_names(given, _KEYS, "key")
    for key in ("name", "transform", "cluster", "sources", "sinks"):
        if not given.get(key):
            raise SpecError(f"{key} is missing")
    name = str(given["name"])
    if not _NAME.fullmatch(name):
        raise SpecError(f"name = {name!r}: letters, digits, - and _")
    cluster = _texts(given["cluster"], "cluster")
    if "kafka.bootstrap.servers" not in cluster:
        raise SpecError('cluster: "kafka.bootstrap.servers" is missing')
    transform = folder / str(given["transform"])
    if transform.suffix not in (".py", ".sql"):
        raise SpecError(f"transform = {given['transform']!r}: a .py or .sql file")
    sources = {source: _texts(options, f"sources.{source}") for source, options in _tables(given, "sources")}
    sinks = {sink: _sink(options, f"sinks.{sink}") for sink, options in _tables(given, "sinks")}
    if transform.suffix == ".sql" and len(sinks) > 1:
        raise SpecError("a transform in SQL has one result: give it one sink")
    return PipelineSpec(
        name,
        folder,
        _place(str(given.get("checkpoint", "checkpoint")), folder),
        _trigger(str(given.get("trigger", "1s"))),
        transform,
        cluster,
        sources,
        sinks,
        _texts(given.get("spark", {}), "spark"),
    )


def _place(checkpoint: str, folder: Path) -> str:
    """A path is meant from the file's folder on; an address as it stands."""
    return checkpoint if "://" in checkpoint else str((folder / checkpoint).resolve())


def _trigger(text: str) -> dict[str, Any]:
    if text == AVAILABLE_NOW:
        return {"availableNow": True}
    found = _DURATION.fullmatch(text)
    if found is None:
        raise SpecError(f'trigger = "{text}": "{AVAILABLE_NOW}", or how often, such as "1s" or "500ms"')
    return {"processingTime": f"{found[1]} {_UNITS[found[2]]}"}


def _tables(given: Mapping[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    tables = given[key]
    if not isinstance(tables, dict):
        raise SpecError(f"{key} are tables, such as [{key}.orders]")
    for name in tables:
        if not name.isidentifier():
            raise SpecError(f"{key}.{name}: the transform uses this name: it must be an identifier")
    return tables.items()


def _sink(options: Any, place: str) -> Sink:
    texts = _texts(options, place)
    mode = texts.pop("outputMode", "append")
    if mode not in _OUTPUT_MODES:
        raise SpecError(f"{place}: outputMode = {mode!r}: one of {', '.join(_OUTPUT_MODES)}")
    return Sink(texts, mode)


def _texts(options: Any, place: str) -> dict[str, str]:
    """Options as Spark takes them. Tables of tables come from names with dots that were not quoted."""
    if not isinstance(options, dict):
        raise SpecError(f"{place} is a table of options")
    out: dict[str, str] = {}
    for name, value in options.items():
        if isinstance(value, dict):
            out |= {f"{name}.{rest}": text for rest, text in _texts(value, f"{place}.{name}").items()}
        else:
            out[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return out


def _check_names(given: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, 1)
            raise SpecError(f"unknown {what} {name}" + (f": did you mean {close[0]}?" if close else ""))
