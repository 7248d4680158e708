"""Range and round-robin as Kafka's clients do them, so that groups of mixed clients agree."""

import random

import pytest

from odradek.client.assignors import ASSIGNORS, assign_range, assign_round_robin
from odradek.core.types import TopicPartition as Tp


def test_range_gives_the_first_members_one_more() -> None:
    shares = assign_range({"b": ["t"], "a": ["t"]}, {"t": [0, 1, 2]})
    assert shares == {"a": [Tp("t", 0), Tp("t", 1)], "b": [Tp("t", 2)]}


def test_range_shares_out_topic_by_topic() -> None:
    shares = assign_range({"a": ["t", "u"], "b": ["t", "u"]}, {"t": [0, 1, 2], "u": [0, 1, 2]})
    assert shares["a"] == [Tp("t", 0), Tp("t", 1), Tp("u", 0), Tp("u", 1)]


def test_round_robin_goes_over_all_topics() -> None:
    shares = assign_round_robin({"a": ["t", "u"], "b": ["t", "u"]}, {"t": [0, 1, 2], "u": [0, 1, 2]})
    assert shares["a"] == [Tp("t", 0), Tp("t", 2), Tp("u", 1)]
    assert shares["b"] == [Tp("t", 1), Tp("u", 0), Tp("u", 2)]


def test_round_robin_passes_over_members_that_did_not_ask() -> None:
    shares = assign_round_robin({"a": ["t"], "b": ["t", "u"]}, {"t": [0], "u": [0, 1]})
    assert shares == {"a": [Tp("t", 0)], "b": [Tp("u", 0), Tp("u", 1)]}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_every_partition_goes_to_one_member_that_asked_for_it(name: str) -> None:
    rng = random.Random(name)
    for _ in range(300):
        partitions = {f"t{i}": list(range(rng.randint(1, 7))) for i in range(rng.randint(0, 4))}
        topics = [*partitions, "absent"]
        members = {f"m{i}": rng.sample(topics, rng.randint(0, len(topics))) for i in range(rng.randint(1, 5))}
        shares = ASSIGNORS[name](members, partitions)
        assert sorted(shares) == sorted(members)
        given = [tp for share in shares.values() for tp in share]
        assert len(given) == len(set(given))
        for member, share in shares.items():
            assert all(tp.topic in members[member] for tp in share)
        wanted = {topic for asked in members.values() for topic in asked}
        assert sorted(given) == sorted(Tp(t, i) for t in partitions if t in wanted for i in partitions[t])
