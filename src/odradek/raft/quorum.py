"""The arithmetic of majorities. Pure, and the only place that counts votes or offsets."""

from collections.abc import Collection, Mapping


def majority(voters: int) -> int:
    """How many of so many voters decide."""
    assert voters > 0, "a quorum has at least one voter"
    return voters // 2 + 1


def has_majority(voters: Collection[int], granted: Collection[int]) -> bool:
    """Whether those who granted are a majority of the voters; others do not count."""
    return sum(voter in granted for voter in voters) >= majority(len(voters))


def committed_offset(voters: Collection[int], ends: Mapping[int, int]) -> int:
    """The end of what a majority of the voters holds durably; `ends` is where each one's log ends.

    A voter that was not heard from holds nothing.
    """
    held = sorted((ends.get(voter, 0) for voter in voters), reverse=True)
    return held[majority(len(voters)) - 1]
