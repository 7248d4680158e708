"""What the documents name is there: classes and their methods, files, commands, make's targets, links."""

from pathlib import Path

import pytest

from tests.documents import known
from tests.documents.names import DOCUMENTS, wrong


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_name_in_a_document_names_something(document: Path) -> None:
    assert wrong(document, document.read_text()) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see `Log.apend_as_leader`", ["Log.apend_as_leader"]),
        ("see `Lag.append_as_leader`", ["Lag.append_as_leader"]),
        ("```\nsocket ── Connection.on_legible    many frames\n```\n", ["Connection.on_legible"]),
        ("see `records/check.chekc`", ["records/check.chekc"]),
        ("see `kernel.colums`", ["kernel.colums"]),
        ("see `log/lag.py`", ["log/lag.py"]),
        ("see docs/storrage.md for it", ["docs/storrage.md"]),
        ("`tests/hostyle` counts", ["tests/hostyle"]),
        ("```\n└─ log/opening/lodaer    leftovers\n```\n", ["log/opening/lodaer"]),
        ("src/odradek/cli/nodes/<name>.py", ["src/odradek/cli/nodes/<name>.py"]),
        ("`odradek topic craete orders`", ["odradek topic craete"]),
        ("```\n$ odradek tpoic list\nTOPIC\n```\n", ["odradek tpoic"]),
        ("```\n$ printf x | odradek produce orders --kye a\n```\n", ["odradek produce --kye"]),
        ("\n\n    make instal && .venv/bin/odradek strat\n", ["odradek strat", "make instal"]),
        ("`make chekc test`", ["make chekc"]),
        ("`make soaks-*`", ["make soaks-*"]),
        ("[there](storrage.md)", ["storrage.md", "(storrage.md)"]),
        ("[there](storage.md#what-is-durable-wenn)", ["(storage.md#what-is-durable-wenn)"]),
    ],
)
def test_a_planted_wrong_name_is_found(text: str, found: list[str]) -> None:
    assert wrong(known.ROOT / "docs/planted.md", text) == found


@pytest.mark.parametrize(
    "text",
    [
        "`Log.append_as_leader`, `Partition.append_checked`, `records/kernel.py`, `log/opening/loader`",
        "`flush.messages`, `process.roles`, `odradek-data/orders-0/*.log`, https://example.org/a/b.py",
        "`odradek txn abort billing-1 -y`, `odradek txn`, `make check test`, `make mutants FOLDER=src`",
        "```python\nodradek.nothing()\n```\n```\nodradek 0.1.0 ready: 127.0.0.1:9092\n```\n",
        "[there](storage.md#what-is-durable-when)",
    ],
)
def test_what_is_right_is_left_alone(text: str) -> None:
    assert wrong(known.ROOT / "docs/planted.md", text) == []
