"""`odradek log verify` and `odradek log diff`: what they show, and the exit codes people script against."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.terminal.progress import Progress
from odradek.testing.broker import Broker
from tests.golden import loader
from tests.support.command import Outcome, odradek
from tests.unit.log.verifying.test_verifying import NAME, flip, made, segments


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loader.unpack("clean", tmp_path_factory.mktemp("clean"))


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(outcome.text)
    return found


def test_nothing_is_found_in_what_apache_closed_cleanly(clean: Path) -> None:
    outcome = odradek("log", "verify", str(clean), "-f", "json")
    assert (outcome.code, rows(outcome)) == (0, [])
    assert outcome.stderr.startswith("no findings in ")
    for partition in ("txn-0", "compacted-0", "__consumer_offsets-0", "__cluster_metadata-0"):
        assert odradek("log", "verify", str(clean / partition)).code == 0


def test_a_directory_that_apache_was_killed_on_is_told_as_such(tmp_path: Path) -> None:
    crashed = loader.unpack("crashed", tmp_path)
    outcome = odradek("log", "verify", str(crashed), "-f", "json")
    assert outcome.code == 3
    assert [row["problem"] for row in rows(outcome)] == ["not closed cleanly"]


def test_nothing_is_found_in_what_a_node_of_ours_closed_cleanly(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        at = ("-b", broker.bootstrap_servers)
        assert odradek("topic", "create", "t", "-p", "2", "-c", "segment.ms=1", *at).code == 0
        for _ in range(3):
            assert odradek("produce", "t", *at, stdin=b"x\n" * 500).code == 0
            broker.advance(1)
        assert odradek("consume", "t", "-g", "g", *at).code == 0
    outcome = odradek("log", "verify", str(tmp_path / "data"), "-f", "json")
    assert (outcome.code, rows(outcome)) == (0, []), outcome


def test_a_finding_says_where_what_and_what_follows(tmp_path: Path) -> None:
    log_dir = made(tmp_path)
    segment = segments(log_dir)[-1]
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(bytes(64))
    outcome = odradek("log", "verify", str(log_dir))
    assert outcome.code == 3
    header, line = outcome.text.splitlines()
    assert header.split() == ["FILE", "POSITION", "PROBLEM", "EXPECTED", "FOUND", "NEXT-START"]
    assert (
        line.split()
        == (
            f"{segment} {size} zeros a batch, or the end of the file 64 bytes 64 bytes are cut off here"
        ).split()
    )
    assert outcome.stderr.startswith("error: 1 finding in 1 partition, ")
    quiet = odradek("log", "verify", "-q", "-f", "{file}:{position}", str(log_dir / NAME))
    assert (quiet.code, quiet.text) == (3, f"{segment}:{size}\n")


def test_what_is_no_log_directory_is_refused(tmp_path: Path) -> None:
    outcome = odradek("log", "verify", str(tmp_path))
    assert outcome.code == 1
    assert "neither the directory of a partition nor a log directory" in outcome.stderr
    assert odradek("log", "verify", str(tmp_path / "nowhere")).code == 1
    assert odradek("log", "verify").code == 2


def test_the_policy_of_a_topic_is_read_from_the_metadata(clean: Path, tmp_path: Path) -> None:
    """A gap is none where a cleaner may have made it."""
    for name in ("compacted-0", "segments-0", "__cluster_metadata-0"):
        shutil.copytree(clean / name, tmp_path / name)
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copy(clean / name, tmp_path / name)
    for path in clean.glob("*-offset-checkpoint"):
        shutil.copy(path, tmp_path / path.name)
    middle = sorted((tmp_path / "segments-0").glob("*.log"))[1].stem
    for path in (tmp_path / "segments-0").glob(f"{middle}.*"):
        path.unlink()
    outcome = odradek("log", "verify", str(tmp_path), "-f", "json")
    assert [(row["problem"], "segments-0" in row["file"]) for row in rows(outcome)] == [("gap", True)]


# --- diff -----------------------------------------------------------------------------------------------


@pytest.fixture
def replicas(tmp_path: Path) -> tuple[Path, Path]:
    a = made(tmp_path / "a")
    b = tmp_path / "b"
    shutil.copytree(a, b)
    return a, b


def test_equal_replicas_do_not_differ(replicas: tuple[Path, Path]) -> None:
    for a, b in (replicas, (replicas[0] / NAME, replicas[1] / NAME)):
        outcome = odradek("log", "diff", str(a), str(b), "-f", "json")
        assert (outcome.code, rows(outcome), outcome.stderr) == (0, [], "no difference in 1 partition\n")


def test_segments_may_begin_elsewhere(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    first, second, *_ = segments(b)
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()
    assert odradek("log", "diff", str(a / NAME), str(b / NAME)).code == 0


def test_other_bytes_are_named_with_both_places(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    (differs,) = _differences(a, _with_other_value(b))
    assert differs["difference"] == "other bytes"
    assert differs["a_crc"] != differs["b_crc"]
    assert (differs["a_position"], differs["b_position"]) == (0, 0)
    assert differs["first_offset"] == int(segments(a)[1].stem)


def _with_other_value(log_dir: Path) -> Path:
    """Another value in the first batch of the second segment, with the CRC that belongs to it."""
    from odradek.records.header import HEADER_BYTES
    from odradek.records.kernel import crc32c

    path = segments(log_dir)[1]
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[8:12], "big") + 12
    data[HEADER_BYTES + 8] ^= 1
    data[17:21] = crc32c(bytes(data[21:size])).to_bytes(4, "big")
    path.write_bytes(data)
    return log_dir


def _differences(a: Path, b: Path) -> list[dict[str, Any]]:
    outcome = odradek("log", "diff", str(a), str(b), "-f", "json")
    assert outcome.code == 3
    return rows(outcome)


def test_another_leader_epoch_is_a_difference(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    path = segments(b)[0]
    data = bytearray(path.read_bytes())
    data[12:16] = (7).to_bytes(4, "big")
    path.write_bytes(data)
    (differs,) = _differences(a, b)
    assert (differs["difference"], differs["a_epoch"], differs["b_epoch"]) == ("other leader epoch", 0, 7)


def test_a_replica_that_is_behind_or_begins_later_is_told(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    segments(b)[-1].unlink()
    segments(a)[0].unlink()
    begins, ends = _differences(a, b)
    assert (begins["difference"], begins["first_offset"]) == ("only B starts here", 0)
    assert begins["last_offset"] == int(segments(a)[0].stem) - 1
    assert ends["difference"] == "only A continues"
    assert ends["first_offset"] == int(segments(a)[-1].stem)


def test_a_damaged_batch_is_told_with_its_place(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    flip(segments(b)[1], 70)
    for (differs,), good, bad in ((_differences(a, b), "a", "b"), (_differences(b, a), "b", "a")):
        assert differs["difference"] == f"bad CRC in {bad.upper()}"
        assert (differs[f"{bad}_file"], differs[f"{bad}_position"]) == (str(segments(b)[1]), 0)
        assert (differs[f"{bad}_crc"], differs["first_offset"]) == (None, int(segments(a)[1].stem))
        assert differs[f"{good}_crc"] is not None


def test_a_torn_end_is_told_with_its_place(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    last = segments(b)[-1]
    last.write_bytes(last.read_bytes()[:-1])
    (differs,) = _differences(a, b)
    assert (differs["difference"], differs["b_file"]) == ("torn batch in B", str(last))


def test_batches_that_neither_can_read_are_told_of_both(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    for replica in replicas:
        flip(segments(replica)[1], 70)
    first = int(segments(a)[1].stem)
    found = [(row["difference"], row["first_offset"]) for row in _differences(a, b)]
    assert found == [("bad CRC in A", first), ("bad CRC in B", first)]


def test_a_directory_in_use_is_no_finding(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=str(data)) as broker:
        assert odradek("topic", "create", "t", "-b", broker.bootstrap_servers).code == 0
        outcome = odradek("log", "verify", str(data), "-f", "json")
        assert (outcome.code, rows(outcome)) == (0, []), outcome
        assert outcome.stderr.startswith(f"a node runs on {data}: ")
        assert odradek("log", "verify", str(data / "t-0")).code == 0
    (data / ".kafka_cleanshutdown").unlink()
    assert [row["problem"] for row in rows(odradek("log", "verify", str(data), "-f", "json"))] == [
        "not closed cleanly"
    ]


def test_partitions_that_only_one_has_are_told(replicas: tuple[Path, Path]) -> None:
    a, b = replicas
    shutil.copytree(b / NAME, b / "orders-1")
    outcome = odradek("log", "diff", str(a), str(b), "-f", "json")
    assert (outcome.code, rows(outcome)) == (3, [])
    assert f"orders-1 is only in {b}" in outcome.stderr
    assert odradek("log", "diff", str(a), str(b / NAME)).code == 2


def test_progress_is_told_of_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_dir = made(tmp_path)
    told: list[int] = []
    monkeypatch.setattr(Progress, "advance", lambda self, count: told.append(count))
    assert odradek("log", "verify", str(log_dir)).code == 0
    assert sum(told) == sum(path.stat().st_size for path in segments(log_dir))
