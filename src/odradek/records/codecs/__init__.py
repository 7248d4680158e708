"""The codecs, one file each: `compress(data, level)`, `decompress(data, limit_bytes)` and `bound(data)`, an
upper bound of the decompressed size, from the headers.

Each codec checks the size before it decompresses: it never allocates more than the limit, and its time in
Python grows with the size of the input only. Kafka's codec numbers and errors are in compression.py.
"""

import functools
from types import ModuleType
from typing import Final

# No producer writes blocks smaller than this on average: such input is made to keep the decoder busy.
_MIN_MEAN_BLOCK_BYTES: Final = 32
_FREE_BLOCKS: Final = 4096


class CodecError(Exception):
    """The input is not valid for the codec."""


class ManyBlocksError(Exception):
    """There are more blocks than `bound` reads. `bound` runs on the event loop."""


class TooLargeError(CodecError):
    """The input decodes to more than the limit."""


def most_blocks(size: int) -> int:
    """How many blocks an input of this size may have."""
    return _FREE_BLOCKS + size // _MIN_MEAN_BLOCK_BYTES


FEW_BLOCKS: Final = 512
UNTOLD_BYTES: Final = 1 << 40
"""The bound for an input with too many blocks to read them all."""


@functools.cache
def cramjam() -> ModuleType:
    """The compression library, imported at its first use, not at the start of the node."""
    import cramjam as loaded

    return loaded
