"""What Spark's checkpoint tells of a batch."""

import json
from pathlib import Path

import pytest

from odradek.core.types import TopicPartition
from odradek.spark.ledger.ledger import LedgerError, Range
from odradek.spark.source.checkpoint import read_range, read_range_of, source_offsets
from odradek.spark.source.planning import to_json

IN = TopicPartition("in", 0)


def write(folder: Path, batch: int, *lines: str) -> None:
    (folder / "offsets").mkdir(exist_ok=True)
    settings = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": batch})
    (folder / "offsets" / str(batch)).write_text("\n".join(["v1", settings, *lines]))


def line(offset: int, cluster: str | None = "c") -> str:
    return json.dumps(to_json({IN: offset}, cluster))


@pytest.mark.parametrize("scheme", ["", "file://", "file:"])
def test_a_batch_goes_from_the_end_of_the_one_before(tmp_path: Path, scheme: str) -> None:
    write(tmp_path, 0, line(5))
    write(tmp_path, 1, line(9))
    place = f"{scheme}{tmp_path}"
    assert read_range(place, 0) == Range((), (line(5),))
    assert read_range(place, 1) == Range((line(5),), (line(9),))


def test_when_and_with_which_settings_a_batch_ran_is_not_part_of_it(tmp_path: Path) -> None:
    write(tmp_path, 0, line(5))
    before = read_range(str(tmp_path), 0)
    (tmp_path / "offsets" / "0").write_text("\n".join(["v1", "{}", line(5)]))
    assert read_range(str(tmp_path), 0) == before


@pytest.mark.parametrize("place", [None, "nowhere", "ftp://somewhere/x"])
def test_a_checkpoint_out_of_reach_is_no_failure(place: str | None) -> None:
    assert not read_range(place, 3).is_known


def test_a_path_that_a_program_gives_has_to_be_that_of_its_query(tmp_path: Path) -> None:
    write(tmp_path, 0, line(5))
    (tmp_path / "metadata").write_text(json.dumps({"id": "q"}))
    assert read_range_of(str(tmp_path), 0, "q") == read_range_of(str(tmp_path), 0, None)
    with pytest.raises(LedgerError, match="belongs to the query q, but this write is in a batch of r"):
        read_range_of(str(tmp_path), 0, "r")
    for place, batch in ((tmp_path, 3), (tmp_path / "nowhere", 0)):
        with pytest.raises(LedgerError, match=f"has no batch {batch}: give the path"):
            read_range_of(str(place), batch, "q")
    assert not read_range_of("ftp://somewhere/x", 3, "q").is_known


def test_only_offsets_of_this_cluster_are_published() -> None:
    lines = (
        line(5),
        line(7, "other"),
        "13",
        '{"path": "x"}',
        "-",
        json.dumps({"in2": {"1": 4}, "@cluster": "c"}),
    )
    assert source_offsets(Range((), lines), "c") == {IN: 5, TopicPartition("in2", 1): 4}
