"""Every kind of file in a log directory, damaged in every way: the message, the consequence, what is kept.

Another partition in the same directory must not be affected and must log nothing. docs/storage.md has the
same table; each row here has the name of its row there.
"""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.log.verifying.directory import check_partition, partition_directories, read_log_directory
from odradek.log.verifying.findings import Finding, Findings
from tests.robustness.storage_node import (
    ALL,
    CLEAN,
    KILLED,
    ORDERS,
    OTHER,
    POWER,
    SIZE,
    STOPS,
    Image,
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


def flip_topic_id(path: Path) -> None:
    content = path.read_text()
    path.write_text(content[:-3] + ("B" if content[-3] == "A" else "A") + content[-2:])


def checkpoints() -> dict[str, Damage]:
    found = {}
    for name in ("recovery-point", "log-start", "replication", "cleaner"):
        file = f"{name}-offset-checkpoint"
        for how, content in (("nonsense", b"\xff\xfe nonsense"), ("torn", b"0\n3\norders 0 1")):
            found[f"{file}: {how}"] = Damage(
                lambda n, file=file, content=content: (n.path / file).write_bytes(content),  # type: ignore[misc]
                rf"/{file} cannot be read, assuming 0 for every offset: .+",
                stops=(CLEAN, KILLED),
            )
        if name == "cleaner":
            continue  # nobody expects one
        found[f"{file}: missing"] = Damage(
            lambda n, file=file: (n.path / file).unlink(),  # type: ignore[misc]
            rf"/{file} is missing, assuming 0 for every offset",
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
        r"/orders-0 ends at offset 8, but was durable up to \d+",
        ALL[:8],
        (CLEAN,),
    ),
    "segment: one in the middle removed": Damage(
        lambda n: n.file(4, ".log").unlink(),
        "The records before .*" + path_of(8, ".log") + " are missing",
        [*ALL[:4], *ALL[8:]],
        (CLEAN, KILLED, POWER),
    ),
    "segment: the leader epoch of a batch flipped": Damage(
        lambda n: flip(n.file(4, ".log"), SIZE + 15), None, stops=(CLEAN, KILLED)
    ),
    "segment: the first removed": Damage(lambda n: n.file(0, ".log").unlink(), None, ALL[4:]),
    "segment: all removed": Damage(
        lambda n: [n.file(base, ".log").unlink() for base in (0, 4, 8)],  # type: ignore[arg-type,return-value]
        r"/orders-0 ends at offset 0, but was durable up to \d+",
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
        path_of(4, ".timeindex") + r": no batch has the timestamp of the entry at byte offset \d+",
        stops=(CLEAN, KILLED),
    ),
    "leader-epoch-checkpoint: nonsense": Damage(
        lambda n: (n.path / "orders-0/leader-epoch-checkpoint").write_bytes(b"\0\1 nonsense"),
        "/orders-0/leader-epoch-checkpoint cannot be read, rebuilding it from the log",
    ),
    "leader-epoch-checkpoint: torn": Damage(
        lambda n: cut(n.path / "orders-0/leader-epoch-checkpoint", -1),
        "/orders-0/leader-epoch-checkpoint cannot be read, rebuilding it from the log",
        stops=(CLEAN, KILLED),
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
        lambda n: (n.path / "orders-0/partition.metadata").unlink(), "/orders-0 has no topic id"
    ),
    "an index without its segment": Damage(
        lambda n: n.file(77, ".index").write_bytes(bytes(8)), "Removing .*" + path_of(77, ".index")
    ),
    "snapshot: missing": Damage(
        lambda n: [p.unlink() for p in (n.path / "orders-0").glob("*.snapshot")],  # type: ignore[arg-type,return-value]
        path_of(12, ".snapshot") + " is missing",
        stops=(CLEAN,),
    ),
    "snapshot: a bit flipped": Damage(
        lambda n: flip(n.file(12, ".snapshot"), 3),
        "Removing producer snapshot .*" + path_of(12, ".snapshot"),
        stops=(CLEAN,),
    ),
    "snapshot: torn": Damage(
        lambda n: cut(n.file(12, ".snapshot"), -1),
        "Removing producer snapshot .*" + path_of(12, ".snapshot"),
        stops=(CLEAN,),
    ),
    "snapshot: nonsense appended": Damage(
        lambda n: add(n.file(12, ".snapshot"), b"nonsense"),
        "Removing producer snapshot .*" + path_of(12, ".snapshot"),
        stops=(CLEAN,),
    ),
    "partition.metadata: a bit flipped": Damage(
        lambda n: flip_topic_id(n.path / "orders-0/partition.metadata"),
        "/orders-0/partition.metadata is damaged: replacing its topic id .* with",
    ),
    ".swap: left behind": Damage(
        lambda n: n.file(0, ".log.swap").write_bytes(n.file(0, ".log").read_bytes()),
        "Removing .*" + path_of(0, ".log") + ": a swapped segment replaces it",
    ),
    ".cleaned: left behind": Damage(
        lambda n: n.file(0, ".log.cleaned").write_bytes(b"half a compaction"), None
    ),
    ".deleted: left behind": Damage(lambda n: n.file(0, ".log.deleted").write_bytes(b"?"), None),
    ".swap: damaged, its source still there": Damage(
        lambda n: n.file(0, ".log.swap").write_bytes(n.file(0, ".log").read_bytes()[:-5]),
        path_of(0, ".log.swap") + f" has no valid record batch at byte offset {3 * SIZE}",
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


# --- what nothing tells of ------------------------------------------------------------------------------


def verify(node: Node) -> list[Finding]:
    into = Findings()
    directory = read_log_directory(node.runtime.disk, str(node.path), into)
    for name, tp in partition_directories(node.runtime.disk, str(node.path)):
        check_partition(node.runtime.disk, directory, name, tp, lambda topic: False, into, lambda count: None)
    return into.all()


UNTOLD: dict[str, tuple[Callable[[Node], Path], str]] = {
    "segment: the leader epoch of a batch flipped": (lambda n: n.file(4, ".log"), "epoch"),
    "any checkpoint: a digit flipped into another digit": (
        lambda n: n.path / "orders-0/leader-epoch-checkpoint",
        "disagrees with the log",
    ),
    "transaction index: a bit flipped that leaves it well-formed": (
        lambda n: min((n.path / "txn-0").glob("*.txnindex")),
        "disagrees with the log",
    ),
}


@pytest.mark.parametrize("name", UNTOLD)
def test_what_a_start_cannot_see_log_verify_does(
    node: Node, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path_in, problem = UNTOLD[name]
    stop(node, CLEAN)
    assert verify(node) == []
    path = path_in(node)
    if path.name == "leader-epoch-checkpoint":
        path.write_text(path.read_text().replace("1 6", "1 7"))
    else:
        flip(path, SIZE + 13 if path.suffix == ".log" else 9)
    (finding,) = verify(node)
    assert finding.file == str(path)
    assert problem in finding.problem + finding.expected
    node.start()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert read(node.log(ORDERS)) == read(node.log(OTHER)) == ALL
    node.stop(clean=True)


CLEANED = "cleaner-offset-checkpoint"


@pytest.mark.parametrize("how", [CLEAN, KILLED])
@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        CLEANED,
    ],
)
def test_a_bit_flipped_anywhere_in_an_offset_checkpoint(node: Node, name: str, how: str) -> None:
    """It cannot be read, or is believed: only a log start can hide records, of its own partition."""
    path = node.path / name
    stop(node, how)
    path.write_text("0\n2\norders 0 4\nother 0 4\n" if name != CLEANED else "0\n1\norders 0 4\n")
    image = Image(node.path)
    for position in range(len(image.contents[path])):
        for bit in (0, 3, 6):
            image.restore()
            content = bytearray(image.contents[path])
            content[position] ^= 1 << bit
            path.write_bytes(content)
            node.start()
            for tp in (ORDERS, OTHER):
                left = read(node.log(tp))
                if name.startswith("log-start"):
                    assert left == ALL[len(ALL) - len(left) :], (position, bit)
                else:
                    assert left == ALL, (position, bit)
                log = node.log(tp)
                assert log.log_end_offset == 12 or (log.log_start_offset > 12 and not left)
            node.stop(clean=False)
