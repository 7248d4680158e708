"""Segments of magic 0 and 1 as Apache's own tools see them: dumped as ours are, consumed from our node."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.golden import loader
from tests.golden.legacy_node import TOPICS, broker_with_old_segments
from tests.support import peer
from tests.support.command import odradek

pytestmark = pytest.mark.apache

NAMES = sorted(loader.legacy())
SEGMENT = "00000000000000000000.log"
BATCH = re.compile(
    r"^(?:baseOffset: (?P<base_offset>\d+) lastOffset|offset): (?P<last_offset>\d+) .*?"
    r"position: (?P<position>\d+) "
    r"(?P<type>\w+): (?P<timestamp>-?\d+) size: (?P<size>\d+) magic: (?P<magic>\d) "
    r"compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)$",
    re.MULTILINE,
)
RECORD = re.compile(r"^\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)", re.MULTILINE)


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Where the segments are, and what dump-log says of each, in one run of it."""
    path = tmp_path_factory.mktemp("legacy")
    loader.unpack("legacy", path)
    files = ",".join(str(path / name / SEGMENT) for name in NAMES)
    done = peer.tool("dump-log", "--files", files, "--deep-iteration", "--print-data-log")
    assert done.returncode == 0, done.stderr
    texts = re.split(r"^Dumping (\S+)$", done.stdout, flags=re.MULTILINE)[1:]
    return path, {Path(file).parent.name: text for file, text in zip(texts[::2], texts[1::2], strict=True)}


def rows(*arguments: str) -> list[dict[str, Any]]:
    outcome = odradek("log", "dump", "-f", "jsonl", *arguments)
    assert (outcome.code, outcome.stderr) == (0, "")
    return [json.loads(line) for line in outcome.text.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_both_dumps_show_the_same(apache: tuple[Path, dict[str, str]], name: str) -> None:
    path, texts = apache
    segment = str(path / name / SEGMENT)
    batches = [match.groupdict() for match in BATCH.finditer(texts[name])]
    ours = rows(segment)
    assert len(ours) == len(batches) > 0
    for row, theirs in zip(ours, batches, strict=True):
        for key in ("last_offset", "position", "size", "magic", "codec", "crc", "valid"):
            assert str(row[key]).lower() == theirs[key], (key, row)
        assert row["base_offset"] == int(theirs["base_offset"] or row["base_offset"])
        assert ("log-append-time" in row["flags"]) is (theirs["type"] == "LogAppendTime")
    records = rows("--records", segment)
    expected = loader.legacy()[name]["records"]
    theirs_of = RECORD.findall(texts[name])
    assert [row["offset"] for row in records] == [int(found[0]) for found in theirs_of]
    assert [r["timestamp"] for r in expected] == [int(found[1]) for found in theirs_of]


def test_a_java_consumer_reads_them_from_our_node(tmp_path: Path) -> None:
    wanted = Counter((r["offset"], r["key"]) for name in NAMES for r in loader.legacy()[name]["records"])
    with broker_with_old_segments(tmp_path) as broker:
        options = ["print.offset=true", "print.key=true", "print.value=false", "null.literal=None"]
        done = peer.tool(
            "console-consumer",
            "--bootstrap-server",
            broker.bootstrap_servers,
            "--include",
            "|".join(TOPICS),
            "--from-beginning",
            "--max-messages",
            wanted.total(),
            "--timeout-ms",
            60_000,
            *(argument for option in options for argument in ("--formatter-property", option)),
        )
    found: Counter[tuple[int, str | None]] = Counter()
    for offset, key in re.findall(r"^Offset:(\d+)\t(.*)$", done.stdout, re.MULTILINE):
        found[int(offset), None if key == "None" else key] += 1
    assert found == wanted, done.stderr
