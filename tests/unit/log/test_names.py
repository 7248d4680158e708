"""Names of files and directories."""

import pytest

from odradek.core.types import TopicPartition
from odradek.log.names import file_name, offset_of, parse_partition_dir, set_aside_dir


def test_segment_files_are_named_after_their_base_offset() -> None:
    assert file_name(147001, ".log") == "00000000000000147001.log"
    assert offset_of("00000000000000147001.timeindex") == 147001


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "1.log", "partition.metadata", "00000000000000147001"]
)
def test_other_files_have_no_offset(name: str) -> None:
    assert offset_of(name) is None


def test_the_partition_follows_the_last_dash() -> None:
    assert parse_partition_dir("a-b.c_d-12") == (TopicPartition("a-b.c_d", 12), "")


@pytest.mark.parametrize("suffix", ["-delete", "-stray", "-future"])
def test_a_directory_set_aside_is_known_by_its_suffix(suffix: str) -> None:
    tp = TopicPartition("a-b", 3)
    assert parse_partition_dir(set_aside_dir(tp, "0123abcd", suffix)) == (tp, suffix)


def test_a_long_topic_name_is_cut_to_what_a_file_system_takes() -> None:
    name = set_aside_dir(TopicPartition("t" * 249, 11), "0" * 32, "-delete")
    assert len(name) == 255
    assert parse_partition_dir(name) is not None


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "meta.properties", ".lock", "topic", "t-x"]
)
def test_other_entries_are_no_partitions(name: str) -> None:
    assert parse_partition_dir(name) is None
