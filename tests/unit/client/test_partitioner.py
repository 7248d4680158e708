"""Keys go where Kafka's Java client would send them; the hash itself is tested with the record kernel."""

from odradek.client.partitioner import partition_of_key


def test_a_key_has_one_partition() -> None:
    assert {partition_of_key(b"abc", 7) for _ in range(3)} == {479470107 % 7}
    assert 0 <= partition_of_key(b"21", 5) < 5
