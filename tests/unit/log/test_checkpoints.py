"""The text files of a log directory, as Apache Kafka writes and reads them."""

import itertools
import uuid

import pytest

from odradek.core.types import TopicPartition
from odradek.log.checkpoints import (
    CheckpointError,
    MetaProperties,
    format_clean_shutdown,
    format_epochs,
    format_meta_properties,
    format_offsets,
    format_partition_metadata,
    parse_clean_shutdown,
    parse_epochs,
    parse_meta_properties,
    parse_offsets,
    parse_partition_metadata,
)
from tests.golden import loader


def test_offset_checkpoints_of_apache_are_read_and_written_back_byte_for_byte() -> None:
    for name, data in loader.files("clean", suffix="-offset-checkpoint").items():
        assert format_offsets(parse_offsets(data)) == data, name


def test_offsets_are_keyed_by_partition() -> None:
    data = b"0\n2\na.b_c-1 0 5\nd 12 7\n"
    assert parse_offsets(data) == {TopicPartition("a.b_c-1", 0): 5, TopicPartition("d", 12): 7}


def test_epoch_checkpoints_of_apache_are_read_and_written_back_byte_for_byte() -> None:
    found = loader.files("clean", suffix="leader-epoch-checkpoint")
    assert found
    for name, data in found.items():
        assert format_epochs(parse_epochs(data)) == data, name


def test_an_empty_checkpoint_has_no_entries() -> None:
    assert parse_offsets(b"") == {}
    assert parse_epochs(b"") == []


@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",
        b"0\n",
        b"0\n2\nt 0 1\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt zero 1\n",
        b"0\nx\n",
        b"\xff\xfe",
        b"\0\0\0",
    ],
)
def test_a_malformed_offset_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        parse_offsets(data)


@pytest.mark.parametrize("data", [b"0\n2\n1 5\n1 6\n", b"0\n2\n1 5\n2 4\n", b"0\n1\n1 5 6\n"])
def test_epochs_that_do_not_rise_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        parse_epochs(data)


def test_partition_metadata_of_apache_is_read_and_written_back_byte_for_byte() -> None:
    for data in loader.files("clean", suffix="partition.metadata").values():
        assert format_partition_metadata(parse_partition_metadata(data)) == data


@pytest.mark.parametrize(
    "data", [b"", b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", b"version: 0\ntopic_id: !"]
)
def test_partition_metadata_that_names_no_topic_is_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        parse_partition_metadata(data)


def test_meta_properties_of_apache_are_read_and_written_as_java_does() -> None:
    (data,) = loader.files("clean", suffix="meta.properties").values()
    meta = parse_meta_properties(data)
    assert meta.node_id == 1
    # The second line is the time of writing: Sun Nov 15 20:42:48 UTC 2026.
    assert format_meta_properties(meta, 1794775368000) == data


def test_meta_properties_survive_a_round_trip() -> None:
    meta = MetaProperties("c1", 3, uuid.UUID(int=12345))
    assert parse_meta_properties(format_meta_properties(meta, 0)) == meta


@pytest.mark.parametrize("data", [b"", b"version=0\ncluster.id=c\nnode.id=1\n", b"version=1\ncluster.id=c\n"])
def test_meta_properties_without_an_identity_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        parse_meta_properties(data)


def test_the_clean_shutdown_file_tells_the_broker_epoch() -> None:
    (data,) = loader.files("clean", suffix=".kafka_cleanshutdown").values()
    assert format_clean_shutdown(parse_clean_shutdown(data)) == data
    assert parse_clean_shutdown(b"") == -1
    assert parse_clean_shutdown(b"{}") == -1


@pytest.mark.parametrize("content", [b"0\n2\n0 0\n1 60\n", b"0\n0\n"])
def test_epochs_that_were_torn_anywhere_are_refused(content: bytes) -> None:
    """Also inside the last number: what is left of it is another one."""
    assert parse_epochs(content) in ([(0, 0), (1, 60)], [])
    for size in range(1, len(content)):
        with pytest.raises(CheckpointError):
            parse_epochs(content[:size])


def test_offsets_that_were_torn_anywhere_are_refused() -> None:
    content = b"0\n2\norders 0 10\norders 1 60\n"
    assert list(parse_offsets(content).values()) == [10, 60]
    for size in range(1, len(content)):
        with pytest.raises(CheckpointError):
            parse_offsets(content[:size])


@pytest.mark.parametrize("line", ["-1 0", "1 -1", "1_0 0", "+1 0", "1 \u0663"])
def test_what_is_no_epoch_or_offset_is_refused(line: str) -> None:
    with pytest.raises(CheckpointError):
        parse_epochs(f"0\n1\n{line}\n".encode())


@pytest.mark.parametrize("line", ["orders -1 0", "orders 0 -1"])
def test_a_partition_or_offset_below_zero_is_refused(line: str) -> None:
    with pytest.raises(CheckpointError):
        parse_offsets(f"0\n1\n{line}\n".encode())


@pytest.mark.parametrize("cluster_id", ["c1", "MkU3OEVBNTcwNTJENDM2Qk"])
def test_meta_properties_that_are_cut_short_never_tell_another_identity(cluster_id: str) -> None:
    """In whatever order the lines stand, and with or without what Java writes above them."""
    meta = MetaProperties(cluster_id, 12, uuid.UUID(int=1 << 100))
    *comments, _ = (lines := format_meta_properties(meta, 0).splitlines(keepends=True))[:3]
    for order in itertools.permutations(lines[2:]):
        for data in (b"".join(order), b"".join([*comments, *order])):
            assert parse_meta_properties(data) == meta
            for end in range(len(data) - 1):
                with pytest.raises(CheckpointError, match=r"incomplete|meta\.properties has"):
                    parse_meta_properties(data[:end])
            if len(order[-1].strip().partition(b"=")[2]) == 22:
                assert parse_meta_properties(data[:-1]) == meta, "nothing is missing"
            else:
                with pytest.raises(CheckpointError, match="incomplete"):
                    parse_meta_properties(data[:-1])


@pytest.mark.parametrize("cluster_id", ["", "a" * 23, "a b", "a.b", "é", "a/b", "a+b", "a" * 39])
def test_what_cannot_be_a_cluster_id_is_refused(cluster_id: str) -> None:
    data = format_meta_properties(MetaProperties(cluster_id, 1, uuid.UUID(int=5)), 0)
    with pytest.raises(CheckpointError, match=r"cluster\.id .* must be 1 to 22 of the characters"):
        parse_meta_properties(data)


@pytest.mark.parametrize("cluster_id", ["a", "A-Z_09", "a" * 22])
def test_a_cluster_id_is_up_to_22_url_safe_characters(cluster_id: str) -> None:
    meta = MetaProperties(cluster_id, 1, uuid.UUID(int=5))
    assert parse_meta_properties(format_meta_properties(meta, 0)) == meta
