"""The packer of repeated answers gives what the general encoder gives."""

from uuid import UUID

import pytest

from odradek.wire.produce import PartitionProduced, encode_produce_response, produce_reply


@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("name", ["t", "a" * 126, "b" * 249, "topic-ü"])
def test_repeated_answers_are_the_general_ones(version, name):
    topic = UUID(int=7) if version >= 13 else name
    reply = produce_reply(version, topic, 3)
    for fields in ((1, 5, -1, 0), (2**31 - 1, 2**62, 1_700_000_000_000, 17)):
        correlation_id, base, append_time_ms, log_start = fields
        answer = PartitionProduced(3, 0, base, append_time_ms, log_start)
        assert reply(*fields) == encode_produce_response(version, correlation_id, [(topic, [answer])])
