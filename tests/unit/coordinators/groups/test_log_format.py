"""Records of `__consumer_offsets`: the hand-written bytes are those of the definitions, the rest is kept."""

import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.coordinators.groups.log_format import ModernKey, decode, encode
from odradek.coordinators.records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from odradek.core.errors import ProtocolError

int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
COMMIT: dict[str, Any] = {
    "group": "g",
    "topic": "t",
    "partition": 0,
    "offset": 5,
    "leader_epoch": -1,
    "commit_timestamp": 1,
    "expire_timestamp": -1,
    "topic_id": uuid.UUID(int=7),
}


@example(**{**COMMIT, "metadata": "m" * 126})
@example(**{**COMMIT, "metadata": "m" * 127})
@example(**{**COMMIT, "metadata": "é" * 100})
@given(
    group=st.text(max_size=200),
    topic=st.text(max_size=200),
    partition=int32,
    offset=int64,
    leader_epoch=int32,
    metadata=st.text(max_size=200),
    commit_timestamp=int64,
    expire_timestamp=st.one_of(st.just(-1), int64),
    topic_id=st.one_of(st.just(uuid.UUID(int=0)), st.uuids()),
)
def test_offset_commits_are_written_as_defined_and_read_back(
    group: str,
    topic: str,
    partition: int,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp: int,
    expire_timestamp: int,
    topic_id: uuid.UUID,
) -> None:
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )
    encoded = encode((key, value))
    version = 4 if expire_timestamp == -1 else 1
    assert encoded == (encode_key(key), encode_value(value, version))
    assert encode((key, None)) == (encode_key(key), None)
    if version == 4:
        assert decode(*encoded) == (key, value)


def test_a_record_type_of_the_future_is_left_alone() -> None:
    assert decode((99).to_bytes(2, "big") + b"\0\1g", b"?") is None


def test_keys_of_share_and_streams_groups_are_kept_whole() -> None:
    data = b"\0\x0b\0\x01g\0\x06member"
    record = decode(data, b"\0\0value")
    assert record == (ModernKey(11, "g", data), b"\0\0value")
    assert encode(record) == (data, b"\0\0value")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"x"),
        (b"\0", b"x"),
        (b"\0\x0b\0\x09g", b"x"),
        (b"\0\x05\0\x09g", b"x"),
        (b"\0\x0b\xff\xffg", b"x"),
        (b"\0\x01\0\x09g", b"x"),
        (encode_key(GroupMetadataKey(group="g")), b"\0\x09"),
        (encode_key(GroupMetadataKey(group="g")), b"\0"),
    ],
)
def test_what_cannot_be_read_is_an_error(key: bytes | None, value: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(key, value)
