"""Files of a log directory damaged at every byte, transaction indexes and swaps: what is left and said."""

import re
from pathlib import Path

import pytest

from odradek.log.log import Isolation, Log
from odradek.log.verifying.findings import Findings
from odradek.log.verifying.partition import Circumstances, PartitionCheck
from tests.robustness.storage_node import (
    ALL,
    CLEAN,
    KILLED,
    ORDERS,
    OTHER,
    POWER,
    SIZE,
    TXN,
    Image,
    Node,
    fill,
    flip,
    path_of,
    read,
    stop,
    times,
)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    fill(node)
    return node


@pytest.mark.parametrize("how", [CLEAN, KILLED])
def test_a_torn_tail_at_every_byte_of_the_last_batch(node: Node, how: str) -> None:
    stop(node, how)
    segment = node.file(8, ".log")
    data = segment.read_bytes()
    image = Image(node.path)
    for size in range(3 * SIZE, 4 * SIZE):
        image.restore()
        segment.write_bytes(data[:size])
        node.start()
        assert read(node.log(ORDERS)) == ALL[:11], size
        assert read(node.log(OTHER)) == ALL
        node.stop(clean=False)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_bit_flipped_anywhere_in_an_index_costs_no_answer(
    node: Node, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    stop(node, CLEAN)
    path = node.file(4, suffix)
    image = Image(node.path)
    noticed = 0
    for position in range(len(image.contents[path])):
        image.restore()
        flip(path, position)
        caplog.clear()
        node.start()
        assert times(node.log(ORDERS)) == ALL, position
        assert read(node.log(ORDERS)) == ALL, position
        if caplog.text:
            noticed += 1
            assert re.search("Rebuilding the indexes of .*" + path_of(4, ".log"), caplog.text)
            assert path.read_bytes() == image.contents[path]
        node.stop(clean=False)
    assert noticed > len(image.contents[path]) // 2


def test_a_bit_flipped_anywhere_in_a_snapshot_costs_no_producer(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    known = dict(node.log(TXN).producers.entries)
    stop(node, CLEAN)
    path = max((node.path / "txn-0").glob("*.snapshot"))
    image = Image(node.path)
    for position in range(len(image.contents[path])):
        image.restore()
        flip(path, position)
        caplog.clear()
        node.start()
        found = node.log(TXN).producers.entries
        assert {i: (e.producer_epoch, e.last_sequence, e.last_offset) for i, e in found.items()} == {
            i: (e.producer_epoch, e.last_sequence, e.last_offset) for i, e in known.items()
        }, position
        assert f"Removing producer snapshot {path}: " in caplog.text
        node.stop(clean=False)


def test_a_bit_flipped_anywhere_in_the_last_batch_ends_the_log_before_it(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """But for the leader epoch and the offset, which Kafka's CRC does not cover: see below."""
    stop(node, KILLED)
    segment = node.file(8, ".log")
    image = Image(node.path)
    for position in [*range(8, 12), *range(16, SIZE)]:
        image.restore()
        flip(segment, 3 * SIZE + position)
        caplog.clear()
        node.start()
        assert read(node.log(ORDERS)) == ALL[:11], position
        assert f"{segment} at byte offset {3 * SIZE}: " in caplog.text
        node.stop(clean=False)


def test_an_offset_that_a_flipped_bit_has_raised_is_believed_and_found_by_verify(node: Node) -> None:
    """Missing offsets are no damage. One that goes back is."""
    stop(node, KILLED)
    segment = node.file(8, ".log")
    image = Image(node.path)
    for position in range(8):
        image.restore()
        flip(segment, 3 * SIZE + position)
        raised = int.from_bytes(segment.read_bytes()[3 * SIZE : 3 * SIZE + 8], "big")
        findings = Findings()
        given = Circumstances(compacted=False)
        PartitionCheck(node.runtime.disk, str(segment.parent), given, findings).run()
        assert 3 * SIZE in [f.position for f in findings.all() if f.file == str(segment)], position
        node.start()
        assert read(node.log(ORDERS)) == [*ALL[:11], raised], position
        node.stop(clean=False)
    image.restore()
    data = bytearray(segment.read_bytes())
    data[3 * SIZE + 7] = 10
    segment.write_bytes(data)
    node.start()
    assert read(node.log(ORDERS)) == ALL[:11]
    node.stop(clean=False)


# --- transactions ---------------------------------------------------------------------------------------


def aborted(log: Log) -> list[tuple[int, int]]:
    info = log.read(0, 1 << 20, Isolation.TXN_COMMITTED)
    assert info.aborted is not None
    return info.aborted


@pytest.mark.parametrize("how", [CLEAN, KILLED])
@pytest.mark.parametrize("damage", ["torn", "nonsense appended", "another version"])
def test_a_transaction_index_that_cannot_be_one_is_written_anew(
    node: Node, damage: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = aborted(node.log(TXN))
    assert wanted
    stop(node, how)
    path = min((node.path / "txn-0").glob("*.txnindex"))
    good = path.read_bytes()
    path.write_bytes(
        {"torn": good[:-1], "nonsense appended": good + b"\7" * 34, "another version": b"\1" + good[1:]}[
            damage
        ]
    )
    node.start()
    assert aborted(node.log(TXN)) == wanted
    assert re.search(f"Recovering from offset \\d+: {path}: ", caplog.text)
    assert path.read_bytes() == good


def test_a_removed_transaction_index_is_made_again_above_the_recovery_point(node: Node) -> None:
    wanted = aborted(node.log(TXN))
    stop(node, POWER)
    for path in (node.path / "txn-0").glob("*.txnindex"):
        path.unlink()
    node.start()
    assert aborted(node.log(TXN)) == wanted


# --- what a swap is made of -----------------------------------------------------------------------------


def test_a_damaged_swap_whose_source_is_gone_is_taken_as_far_as_it_is_good(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    stop(node, POWER)
    swap = node.file(0, ".log.swap")
    node.file(0, ".log").rename(swap)
    flip(swap, 2 * SIZE + 50)
    node.start()
    assert f"{swap} has no valid record batch at byte offset {2 * SIZE}" in caplog.text
    assert read(node.log(ORDERS)) == [0, 1]


def test_a_swap_without_its_log_leaves_the_segment_readable(node: Node) -> None:
    stop(node, CLEAN)
    node.file(0, ".index.swap").write_bytes(bytes(8))
    node.start()
    assert read(node.log(ORDERS)) == ALL


def test_a_log_start_beyond_the_end_begins_the_log_anew(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    stop(node, CLEAN)
    (node.path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 820\n")
    node.start()
    log = node.log(ORDERS)
    assert (log.log_start_offset, log.log_end_offset) == (820, 820)
    assert (
        "/orders-0 ends at offset 12, before its log start offset 820: starting with an empty log"
        in caplog.text
    )
    assert read(node.log(OTHER)) == ALL
