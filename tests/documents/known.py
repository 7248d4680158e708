"""What there is to be named: files, classes with their members, commands with their options, make's targets.

Nothing of odradek is imported for it, but for the commands: modules are read as text.
"""

import ast
import os
import re
from functools import cache
from pathlib import Path

from tests.support.cli_reference import command_tree, leaves

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/odradek"


@cache
def files() -> frozenset[str]:
    """Every file and folder of the repository, from its root, but for those that begin with a dot."""
    found: set[str] = set()
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            n for n in folders if n[0] != "." and n != "__pycache__" and not n.endswith(".egg-info")
        ]
        found |= {os.path.relpath(os.path.join(folder, name), ROOT) for name in [*folders, *names]}
    return frozenset(found)


@cache
def endings() -> frozenset[str]:
    """Every way to name a file or folder by the last parts of its path, with or without a module's suffix."""
    found = set()
    for path in files():
        parts = path.split("/")
        for start in range(len(parts)):
            ending = "/".join(parts[start:])
            found |= {ending, re.sub(r"\.(py|pyi|h)$", "", ending)}
    return frozenset(found)


@cache
def folder_names() -> frozenset[str]:
    return frozenset(Path(path).name for path in files() if (ROOT / path).is_dir())


def modules() -> list[Path]:
    return [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]


@cache
def members() -> dict[str, set[str]]:
    """The names that every class of the package has, by the name of the class, with those of its bases."""
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                own.setdefault(node.name, set()).update(_members(node))
                bases.setdefault(node.name, set()).update(_name(base) for base in node.bases)
    return {name: set().union(*(own[c] for c in _line(name, bases) if c in own)) for name in own}


def _members(node: ast.ClassDef) -> set[str]:
    inside = ast.walk(node)
    found = {n.name for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    for part in inside:
        if isinstance(part, ast.AnnAssign | ast.Assign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            found |= {t.id for t in targets if isinstance(t, ast.Name)}
            found |= {t.attr for t in targets if isinstance(t, ast.Attribute) and _name(t.value) == "self"}
    return found


def _line(name: str, bases: dict[str, set[str]]) -> set[str]:
    found, ahead = set(), [name]
    while ahead:
        found.add(current := ahead.pop())
        ahead += bases.get(current, set()) - found
    return found


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@cache
def module_names() -> dict[str, set[str]]:
    """What modules define or import at their top, by the ends of their paths: `check`, `records/check`."""
    found: dict[str, set[str]] = {}
    for path in modules():
        names = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)}
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        for start in range(len(parts)):
            found.setdefault("/".join(parts[start:]), set()).update(names)
    return found


@cache
def commands() -> dict[str, set[str]]:
    """Every command that can be run, and its options."""
    return {
        name: {o for p in command.params for o in [*p.opts, *p.secondary_opts]} | {"--help"}
        for name, command in leaves(command_tree())
    }


@cache
def groups() -> frozenset[str]:
    return frozenset(" ".join(name.split()[:n]) for name in commands() for n in range(1, len(name.split())))


@cache
def targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M))


@cache
def attributes() -> frozenset[str]:
    """Whatever can stand behind a dot: members of classes and what modules have."""
    return frozenset().union(*members().values(), *module_names().values())


@cache
def sources() -> str:
    """All of the package as one text. It has the keys of settings, which look like `module.function`."""
    return "\n".join(p.read_text() for p in [*modules(), PACKAGE / "core/config/definitions.json"])
