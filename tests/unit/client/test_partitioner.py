"""Keys go where Kafka's Java client would send them."""

import pytest

from odradek.client.partitioner import murmur2, partition_of_key


# Hashes as signed 32-bit numbers, taken from Apache Kafka's own Utils.murmur2.
@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_of_java(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_a_key_has_one_partition() -> None:
    assert {partition_of_key(b"abc", 7) for _ in range(3)} == {479470107 % 7}
    assert 0 <= partition_of_key(b"21", 5) < 5
