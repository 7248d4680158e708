"""The garbage collector of a node's process: its pauses must not grow with the number of partitions.

A full collection looks at all objects, about a microsecond each, and stops the event loop meanwhile. The
objects of a log live until the topic is deleted, and no cycle keeps them alive then: reference counts free
them. So the collector need not look at them.
"""

import asyncio
import gc
from collections.abc import Callable
from typing import Final

LOOK_S: Final = 0.1
MANY_LOGS: Final = 200
"""Of about 50 objects each: a collection that looks at them takes some 10 ms."""


def freeze() -> None:
    """Take all objects out of the collector's sight. Recent garbage is collected first."""
    gc.collect(1)
    gc.freeze()


async def keep_frozen(logs_opened: Callable[[], int], freeze: Callable[[], None] = freeze) -> None:
    """Freeze the heap whenever many logs were opened since the last time."""
    seen = logs_opened()
    while True:
        await asyncio.sleep(LOOK_S)
        opened = logs_opened()
        if opened >= seen + MANY_LOGS:
            seen = opened
            freeze()
