"""How the descriptors of a process are divided."""

import pytest

from odradek.broker.network.descriptors import share_descriptors


@pytest.mark.parametrize("limit", [16, 64, 256, 1024, 4096, 1 << 20])
def test_everybody_has_a_share_and_all_shares_fit(limit: int) -> None:
    shares = share_descriptors(limit)
    assert min(shares) >= 1
    assert sum(shares) < limit, "something is left for listeners, locks and checkpoints"


def test_most_of_a_large_limit_is_for_clients() -> None:
    assert share_descriptors(1024).connections == 448
    assert share_descriptors(1 << 20).connections == (1 << 20) - 2752
