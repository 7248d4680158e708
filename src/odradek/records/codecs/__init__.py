"""The codecs, one file each: `compress(data, level)`, `decompress(data, limit_bytes)` and `bound(data)`, the
size at most that data decompresses to, as far as its headers tell.

Each finds out what its input will take before it takes it: no more than the limit is ever held, and no more
time is spent in Python than the size of the input warrants. Kafka's numbers and errors are compression.py's.
"""

import functools
from types import ModuleType
from typing import Final

# A block of fewer bytes on average than this is no producer's work but an attempt to keep the decoder busy.
_MIN_MEAN_BLOCK_BYTES: Final = 32
_FREE_BLOCKS: Final = 4096


class CodecError(Exception):
    """The input is not what the codec writes."""


class ManyBlocksError(Exception):
    """There are more blocks than `bound` looks at: it is asked on the event loop."""


class TooLargeError(CodecError):
    """The input decodes to more than the limit."""


def most_blocks(size: int) -> int:
    """How many blocks an input of a size may have."""
    return _FREE_BLOCKS + size // _MIN_MEAN_BLOCK_BYTES


FEW_BLOCKS: Final = 512
UNTOLD_BYTES: Final = 1 << 40
"""What an input of many blocks may decompress to, as far as a short look tells."""


@functools.cache
def cramjam() -> ModuleType:
    """Loaded with the first batch that needs it, not with the node."""
    import cramjam as loaded

    return loaded
