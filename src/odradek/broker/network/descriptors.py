"""Divides the file descriptors of the process: clients never use those that the logs need. Pure.

An idle connection keeps its descriptor for minutes, and logs open files at any time. Both have a fixed share,
so that neither waits for the other. A reply that is not sent yet keeps its files open.
"""

from typing import Final, NamedTuple

MAX_FILES: Final = 512
MAX_REPLIES: Final = 2048
MAX_HEALTH: Final = 64
MAX_OTHERS: Final = 128


class DescriptorShares(NamedTuple):
    """`connections` of clients, `files` of logs, files that only `replies` keep open, connections for
    `health` and metrics.

    The rest is for listeners, locks, checkpoints, flushes and cleanings.
    """

    connections: int
    files: int
    replies: int
    health: int


def share_descriptors(limit: int) -> DescriptorShares:
    """Divide the limit of the process (RLIMIT_NOFILE)."""
    files = min(MAX_FILES, limit // 4)
    replies = min(MAX_REPLIES, limit // 8)
    health = min(MAX_HEALTH, max(1, limit // 16))
    others = min(MAX_OTHERS, limit // 4)  # rolling many partitions opens and syncs their files for a moment
    return DescriptorShares(max(1, limit - files - replies - health - others), files, replies, health)
