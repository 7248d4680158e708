"""The layers of the package, read from the import linter's contract, and what a walk calls a module. Pure.

A walk names modules of the layers from `broker` and `spark` down to `raft`. Of `log` it names the modules at
the top and the folders, of `client`, `wire` and `records` only the layer. `runtime`, `core` and `libraries`
are tools of all layers and are left out, and so is `broker/node`, which only ties parts together.
"""

import tomllib
from functools import cache
from typing import NamedTuple

from tests.documents.known import ROOT

_PACKAGE = "odradek"
_WHOLE = ("client", "wire", "records")
_BY_FOLDER = ("log",)
_LEFT_OUT = ("cli", "http", "testing", "sim", "libraries", "runtime", "core")
_WIRING = "broker/node"
_TWINS = "records/twins/"
"""They stand in for the C kernel, which no tracer sees."""


class Place(NamedTuple):
    """What a walk names: a layer, and a module or folder of it."""

    layer: str
    name: str


@cache
def _depths() -> dict[str, int]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {
        name.strip().removeprefix(f"{_PACKAGE}."): depth
        for depth, line in enumerate(layers)
        for name in line.replace("|", ":").split(":")
    }


def layers() -> list[str]:
    """The uppermost first."""
    return list(_depths())


def path(module: str) -> str:
    """`odradek.log.parts.reading` as `log/parts/reading`; nothing for a module of others."""
    package, _, rest = module.partition(".")
    return rest.replace(".", "/") if package == _PACKAGE else ""


def layer(module_path: str) -> str:
    return module_path.partition("/")[0]


def is_seen_through(module_path: str) -> bool:
    """Tools of all layers, and wiring: what they call counts as called by their caller."""
    is_tool = layer(module_path) in _LEFT_OUT or module_path.startswith(_TWINS)
    return is_tool or module_path == _WIRING


def place(module_path: str) -> Place | None:
    """None for what a walk leaves out."""
    top, _, rest = module_path.partition("/")
    if is_seen_through(module_path):
        return None
    if top in _WHOLE:
        return Place(top, "")
    return Place(top, rest.partition("/")[0] if top in _BY_FOLDER else rest)


def is_upward(caller: str, called: str) -> bool:
    """Whether a call from one module to another leaves the way down: to a layer above, or beside."""
    here, there = layer(caller), layer(called)
    return here != there and _depths()[there] <= _depths()[here]
