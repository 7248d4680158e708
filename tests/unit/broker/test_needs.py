"""Handlers name the services that they use, and no others; that the broker has them is for mypy to say."""

import re
from pathlib import Path

import pytest

import odradek.broker

BROKER = Path(odradek.broker.__file__ or "").parent
NEEDS = re.compile(r"^class Needs\([^)]*\):\n((?:    \w+: .*\n)+)", re.MULTILINE)
MODULES = [path for path in sorted(BROKER.rglob("*.py")) if NEEDS.search(path.read_text())]


def test_most_handlers_are_among_them() -> None:
    assert len(MODULES) > 40


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_is_needed_is_used(path: Path) -> None:
    text = path.read_text()
    needs = NEEDS.search(text)
    assert needs is not None
    named = re.findall(r"^    (\w+):", needs[1], re.MULTILINE)
    assert sorted(named) == sorted(set(re.findall(r"services\.(\w+)", text)) & set(named))
    assert named == sorted(named)


@pytest.mark.parametrize("path", sorted((BROKER / "handlers").glob("*.py")), ids=lambda path: path.stem)
def test_no_handler_knows_the_node(path: Path) -> None:
    assert "broker.node" not in path.read_text()
