"""`odradek log dump` shows what Apache's own dump-log shows, and finds damage."""

import errno
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.files.dump_decode import decoder_for
from odradek.cli.records.record_format import readable
from odradek.runtime.real import RealDisk
from tests.golden import loader
from tests.support.command import Outcome, odradek
from tests.support.node import ODRADEK

BATCH = re.compile(
    r"baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+) count: (?P<count>\d+) "
    r"baseSequence: (?P<base_sequence>-?\d+) .*? producerId: (?P<producer_id>-?\d+) "
    r"producerEpoch: (?P<producer_epoch>-?\d+) partitionLeaderEpoch: (?P<leader_epoch>\d+) .*? "
    r"position: (?P<position>\d+) .*? size: (?P<size>\d+) magic: (?P<magic>\d) "
    r"compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loader.unpack("clean", tmp_path_factory.mktemp("golden"))


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    assert (outcome.code, outcome.stderr) == (0, "")
    return [json.loads(line) for line in outcome.text.splitlines()]


def dump_of(name: str) -> str:
    (text,) = loader.files("dumps", name).values()
    return text.decode()


@pytest.mark.parametrize("partition", ["codec-lz4-0", "compacted-0", "txn-0", "txn-1"])
def test_batches_are_those_of_apaches_dump(data: Path, partition: str) -> None:
    file = "00000000000000000000.log"
    found = rows(odradek("log", "dump", "-f", "jsonl", str(data / partition / file)))
    apache = [match.groupdict() for match in BATCH.finditer(dump_of(f"{partition}_{file}.txt"))]
    assert len(found) == len(apache) > 0
    for ours, theirs in zip(found, apache, strict=True):
        for key, value in theirs.items():
            shown = "-1" if ours[key] is None else str(ours[key]).lower()
            assert shown == value, (key, ours)


def test_indexes_are_those_of_apaches_dump(data: Path) -> None:
    folder = data / "segments-0"
    offsets = rows(odradek("log", "dump", "-f", "jsonl", str(folder / "00000000000000000000.index")))
    apache = re.findall(r"offset: (\d+) position: (\d+)", dump_of("segments-0_00000000000000000000.index"))
    assert [(str(row["offset"]), str(row["position"])) for row in offsets] == apache
    times = rows(odradek("log", "dump", "-f", "jsonl", str(folder / "00000000000000000000.timeindex")))
    apache = re.findall(
        r"timestamp: (\d+) offset: (\d+)", dump_of("segments-0_00000000000000000000.timeindex")
    )
    assert [(str(row["timestamp_ms"]), str(row["offset"])) for row in times] == apache
    aborted = rows(odradek("log", "dump", "-f", "jsonl", str(data / "txn-0/00000000000000000000.txnindex")))
    assert len(aborted) == dump_of("txn-0_00000000000000000000.txnindex").count("producerId")


def test_pre_allocated_indexes_end_where_their_entries_end(tmp_path: Path) -> None:
    data = loader.unpack("crashed", tmp_path, "segments-0")
    for path in sorted((data / "segments-0").glob("*.*index")):
        entries = rows(odradek("log", "dump", "-f", "jsonl", str(path)))
        assert len(entries) < 1000


def test_records_are_shown_and_can_be_chosen(data: Path) -> None:
    path = str(data / "txn-0/00000000000000000000.log")
    assert odradek("log", "dump", "--records", "-o", "5:8", path).text == (
        "OFFSET  TIMESTAMP                 CONTROL  KEY   VALUE   HEADERS\n"
        "     5  2026-11-15T20:43:04.269Z  -        t2-0  t2-0-4  -\n"
        "     6  2026-11-15T20:43:04.465Z  abort    -     -       -\n"
        "     7  2026-11-15T20:43:04.516Z  abort    -     -       -\n"
    )
    assert [
        row["offset"] for row in rows(odradek("log", "dump", "--records", "-o", "5", "-f", "jsonl", path))
    ] == [5]
    assert odradek("log", "dump", "-o", "end", path).code == 2


def test_records_of_the_clusters_own_topics_are_decoded(data: Path) -> None:
    path = str(data / "__cluster_metadata-0/00000000000000000000.log")
    values = [row["value"] for row in rows(odradek("log", "dump", "--records", "-f", "jsonl", path))]
    assert {"type": "FeatureLevelRecord", "name": "metadata.version", "feature_level": 30} in values
    groups = [
        row["key"]
        for partition in range(3)
        for row in rows(
            odradek(
                "log",
                "dump",
                "--records",
                "-f",
                "jsonl",
                str(data / f"__consumer_offsets-{partition}/00000000000000000000.log"),
            )
        )
    ]
    assert any(key and key["type"] == "OffsetCommitKey" and key["group"] == "classic-group" for key in groups)


def test_a_metadata_record_of_an_unknown_type_is_shown_as_its_bytes() -> None:
    unknown = b"\x01\x06\x00\x00"
    assert decoder_for("__cluster_metadata-0")(None, unknown) == (None, readable(unknown))


def test_a_directory_is_dumped_file_by_file(data: Path) -> None:
    outcome = odradek("log", "dump", str(data))
    assert (outcome.code, outcome.stderr) == (0, "")
    headings = re.findall(r"^==> (.*) <==$", outcome.text, re.MULTILINE)
    assert f"{data}/txn-0/00000000000000000000.txnindex" in headings
    assert f"{data}/meta.properties" in headings
    assert f"{data}/txn-0/leader-epoch-checkpoint" in headings


def test_damage_is_found_and_everything_else_still_shown(data: Path, tmp_path: Path) -> None:
    good = (data / "txn-0/00000000000000000000.log").read_bytes()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(good[:180] + bytes([good[180] ^ 1]) + good[181:] + b"tail")
    outcome = odradek("log", "dump", "-f", "jsonl", str(path))
    assert outcome.code == 3
    assert outcome.stderr == (
        f"error: {path}: position 112: the batch does not match its CRC\n"
        f"{path}: 4 bytes after the last whole batch, at position {len(good)}\n"
    )
    valid = [json.loads(line)["valid"] for line in outcome.text.splitlines()]
    assert valid.count(False) == 1
    snapshot = tmp_path / "00000000000000000098.snapshot"
    snapshot.write_bytes(b"\0\1garbage that is no snapshot")
    assert odradek("log", "dump", str(snapshot)).code == 3


def test_what_is_no_log_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    outcome = odradek("log", "dump", str(tmp_path / "notes.txt"))
    assert outcome.code == 1
    assert "cannot show this kind of file" in outcome.stderr
    missing = odradek("log", "dump", str(tmp_path / "nowhere"))
    assert (missing.code, missing.stderr.splitlines()[0]) == (
        1,
        f"error: {tmp_path}/nowhere: No such file or directory",
    )


def test_an_unreadable_file_is_one_line_and_the_others_are_shown(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut, other = (str(data / partition / "00000000000000000000.log") for partition in ("txn-0", "txn-1"))

    def open_unless_shut(_self: RealDisk, path: str, flags: int) -> int:
        if path == shut:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return os.open(path, flags)

    monkeypatch.setattr(RealDisk, "open", open_unless_shut)
    outcome = odradek("log", "dump", "-f", "jsonl", shut, other)
    assert (outcome.code, outcome.stderr) == (1, f"error: {shut}: Permission denied\n")
    assert {json.loads(line)["file"] for line in outcome.text.splitlines()} == {other}


def test_a_full_disk_under_stdout_is_one_line(data: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [ODRADEK, "log", "dump", str(data / "txn-0")], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"error: cannot write to stdout: No space left on device\n")
