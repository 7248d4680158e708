"""The answer to OffsetFetch that is packed by hand is the one that its definition describes."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_codec, response_encoder, response_types

types = response_types(ApiKey.OFFSET_FETCH)
TEXT = st.text(max_size=200).filter(lambda text: text.isprintable())
ROWS = st.builds(
    types.OffsetFetchResponsePartitions,
    partition_index=st.integers(0, 2**31 - 1),
    committed_offset=st.integers(-1, 2**63 - 1),
    committed_leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.just("") | st.none() | TEXT,
    error_code=st.sampled_from((0, 0, 88)),
)
TOPICS = st.builds(
    types.OffsetFetchResponseTopics,
    name=TEXT,
    topic_id=st.integers(0, 2**128 - 1).map(lambda n: UUID(int=n)),
    partitions=st.lists(ROWS, max_size=5),
)
GROUPS = st.builds(
    types.OffsetFetchResponseGroup,
    group_id=TEXT,
    topics=st.lists(TOPICS, max_size=3),
    error_code=st.sampled_from((0, 16)),
)


@pytest.mark.parametrize("version", [8, 9, 10])
@given(st.lists(GROUPS, max_size=3))
@settings(max_examples=100, deadline=None)
def test_the_bytes_are_those_of_the_definition(version: int, groups: list[Any]) -> None:
    response = types.OffsetFetchResponse(groups=groups, throttle_time=7)
    by_hand = response_encoder(ApiKey.OFFSET_FETCH, version)(response)
    assert by_hand == response_codec(ApiKey.OFFSET_FETCH).encoder(version)(response)
