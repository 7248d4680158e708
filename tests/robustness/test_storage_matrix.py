"""Every kind of file of a log directory, damaged in every way: what is said, what follows, what is kept.

Beside the damaged partition lies another one, which must come through without a word. docs/storage.md holds
the same table; each row here is named after its row there.
"""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.robustness.storage_node import (
    ALL,
    CLEAN,
    KILLED,
    ORDERS,
    OTHER,
    POWER,
    SIZE,
    STOPS,
    Node,
    add,
    append_on_loop,
    cut,
    fill,
    flip,
    path_of,
    read,
    stop,
    times,
)
from tests.unit.log.support import batch

DOCUMENT = Path(__file__).parents[2] / "docs/storage.md"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    fill(node)
    return node


class Damage(NamedTuple):
    """How a file is damaged, what the log says about it, and which records of the partition are left."""

    do: Callable[[Node], None]
    said: str | None
    left: list[int] = ALL
    stops: tuple[str, ...] = STOPS


def checkpoints() -> dict[str, Damage]:
    found = {}
    for name in ("recovery-point", "log-start", "replication"):
        file = f"{name}-offset-checkpoint"
        for how, content in (("nonsense", b"\xff\xfe nonsense"), ("torn", b"0\n3\norders 0 1")):
            found[f"{file}: {how}"] = Damage(
                lambda n, file=file, content=content: (n.path / file).write_bytes(content),  # type: ignore[misc]
                rf"/{file} cannot be read, taking 0 for every offset: .+",
                stops=(CLEAN, KILLED),
            )
        found[f"{file}: missing"] = Damage(
            lambda n, file=file: (n.path / file).unlink(),  # type: ignore[misc]
            rf"/{file} is missing, taking 0 for every offset",
            stops=(CLEAN,),
        )
    return found


DAMAGES: dict[str, Damage] = {
    "segment: torn tail": Damage(
        lambda n: cut(n.file(8, ".log"), -1),
        path_of(8, ".log") + rf"\D+ {3 * SIZE}\b.*",
        ALL[:11],
    ),
    "segment: nonsense appended": Damage(
        lambda n: add(n.file(8, ".log"), b"nonsense " * 20), path_of(8, ".log") + rf"\D+ {4 * SIZE}\b.*"
    ),
    "segment: zeros appended": Damage(
        lambda n: add(n.file(8, ".log"), bytes(5000)), path_of(8, ".log") + rf"\D+ {4 * SIZE}\b.*"
    ),
    "segment: a bit flipped, above the recovery point": Damage(
        lambda n: flip(n.file(8, ".log"), 2 * SIZE + 40),
        path_of(8, ".log") + rf" at byte offset {2 * SIZE}: .*Truncating {2 * SIZE} bytes",
        ALL[:10],
        (KILLED, POWER),
    ),
    "segment: a length flipped, below the recovery point": Damage(
        lambda n: flip(n.file(4, ".log"), SIZE + 9), None, [0, 1, 2, 3, 4], (CLEAN, KILLED)
    ),
    "segment: the last removed": Damage(
        lambda n: n.file(8, ".log").unlink(),
        r"/orders-0 ends at offset 8, though it was durable up to \d+",
        ALL[:8],
        (CLEAN,),
    ),
    "segment: one in the middle removed": Damage(
        lambda n: n.file(4, ".log").unlink(),
        "The records before .*" + path_of(8, ".log") + " are missing",
        [*ALL[:4], *ALL[8:]],
        (CLEAN, KILLED),
    ),
    "segment: one in the middle removed, above the recovery point": Damage(
        lambda n: n.file(4, ".log").unlink(),
        "Dropping the 1 segments after .*" + path_of(0, ".log"),
        ALL[:4],
        (POWER,),
    ),
    "segment: all removed": Damage(
        lambda n: [n.file(base, ".log").unlink() for base in (0, 4, 8)],  # type: ignore[arg-type,return-value]
        r"/orders-0 ends at offset 0, though it was durable up to \d+",
        [],
        (CLEAN, KILLED),
    ),
    "offset index: missing": Damage(
        lambda n: n.file(4, ".index").unlink(),
        "Rebuilding the indexes of .*" + path_of(4, ".log"),
        stops=(CLEAN, KILLED),
    ),
    "offset index: torn": Damage(
        lambda n: cut(n.file(4, ".index"), -1), path_of(4, ".index") + r": \d+ bytes", stops=(CLEAN, KILLED)
    ),
    "offset index: zeros appended": Damage(
        lambda n: add(n.file(4, ".index"), bytes(400)),
        path_of(4, ".index") + ": entry",
        stops=(CLEAN, KILLED),
    ),
    "offset index: nonsense appended": Damage(
        lambda n: add(n.file(4, ".index"), b"\7" * 80),
        "Rebuilding the indexes of .*" + path_of(4, ".log"),
        stops=(CLEAN, KILLED),
    ),
    "time index: missing": Damage(
        lambda n: n.file(4, ".timeindex").unlink(), path_of(4, ".timeindex"), stops=(CLEAN, KILLED)
    ),
    "time index: torn": Damage(
        lambda n: cut(n.file(4, ".timeindex"), -1),
        path_of(4, ".timeindex") + r": \d+ bytes",
        stops=(CLEAN, KILLED),
    ),
    "time index: zeros appended": Damage(
        lambda n: add(n.file(4, ".timeindex"), bytes(1200)),
        path_of(4, ".timeindex") + ": entry",
        stops=(CLEAN, KILLED),
    ),
    "time index: nonsense appended": Damage(
        lambda n: add(n.file(4, ".timeindex"), b"\7" * 12),
        path_of(4, ".timeindex") + r": no batch has the time at byte offset \d+",
        stops=(CLEAN, KILLED),
    ),
    "leader-epoch-checkpoint: nonsense": Damage(
        lambda n: (n.path / "orders-0/leader-epoch-checkpoint").write_bytes(b"\0\1 nonsense"),
        "/orders-0/leader-epoch-checkpoint cannot be read, rebuilding it from the log",
    ),
    "leader-epoch-checkpoint: missing": Damage(
        lambda n: (n.path / "orders-0/leader-epoch-checkpoint").unlink(),
        "/orders-0/leader-epoch-checkpoint is missing, rebuilding it from the log",
        stops=(CLEAN, KILLED),
    ),
    "partition.metadata: torn": Damage(
        lambda n: cut(n.path / "orders-0/partition.metadata", 5),
        "/orders-0/partition.metadata cannot be read",
    ),
    "partition.metadata: missing": Damage(
        lambda n: (n.path / "orders-0/partition.metadata").unlink(), "/orders-0 does not tell its topic"
    ),
    "an index without its segment": Damage(
        lambda n: n.file(77, ".index").write_bytes(bytes(8)), "Removing .*" + path_of(77, ".index")
    ),
    "snapshot: missing": Damage(
        lambda n: [p.unlink() for p in (n.path / "orders-0").glob("*.snapshot")],  # type: ignore[arg-type,return-value]
        path_of(12, ".snapshot") + " is missing",
        stops=(CLEAN,),
    ),
    ".cleaned: left behind": Damage(
        lambda n: n.file(0, ".log.cleaned").write_bytes(b"half a compaction"), None
    ),
    ".deleted: left behind": Damage(lambda n: n.file(0, ".log.deleted").write_bytes(b"?"), None),
    ".swap: damaged, its source still there": Damage(
        lambda n: n.file(0, ".log.swap").write_bytes(n.file(0, ".log").read_bytes()[:-5]),
        path_of(0, ".log.swap") + f" has no good record batch at byte offset {3 * SIZE}",
    ),
    **checkpoints(),
}


CASES = [(name, how) for name, damage in DAMAGES.items() for how in damage.stops]


@pytest.mark.parametrize(("name", "how"), CASES)
def test_damage_is_told_and_costs_nothing_else(
    node: Node, name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    damage = DAMAGES[name]
    stop(node, how)
    damage.do(node)
    caplog.set_level(logging.INFO)
    node.start()
    log = node.log(ORDERS)
    left = read(log)
    assert left == damage.left, caplog.text
    if left == ALL:
        assert times(log) == ALL
        assert log.epochs.entries == [(0, 0), (1, 6)]
    if damage.said is not None:
        assert re.search(damage.said, caplog.text), caplog.text
    assert "/other-0" not in caplog.text
    assert read(node.log(OTHER)) == ALL
    (info,) = append_on_loop(log, batch(), epoch=1)
    assert info.first_offset == log.log_end_offset - 1 >= (left[-1] + 1 if left else 0)
    node.stop(clean=True)
    caplog.clear()
    node.start()
    assert node.log(ORDERS).log_end_offset == info.last_offset + 1
    if "below the recovery point" not in name:
        assert read(node.log(ORDERS)) == [*left, info.first_offset]
        if "middle" not in name:
            assert not [r for r in caplog.records if r.levelno >= logging.WARNING], "told once, then mended"
    node.stop(clean=True)


def test_every_damage_is_in_the_document() -> None:
    rows = [line.split(" | ") for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    for name in DAMAGES:
        file, _, how = name.partition(": ")
        assert any(file in row[0] and how in row[1] for row in rows), name
