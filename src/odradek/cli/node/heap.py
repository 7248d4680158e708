"""The garbage collector of a node's process: its pauses must not grow with the number of partitions.

A full collection looks at all objects, about a microsecond each, and nobody is served meanwhile. What a log
and its partition are made of lives until the topic is deleted, and goes by its reference counts then: nothing
of it is kept alive by a cycle. So the collector need not look at it, once it is there.
"""

import asyncio
import gc
from collections.abc import Callable
from typing import Final

LOOK_S: Final = 0.1
MANY_LOGS: Final = 200
"""Of about 50 objects each: looking at those that are new takes some 10 ms."""


def settle() -> None:
    """What is there now is not looked at again. Garbage of late is collected first."""
    gc.collect(1)
    gc.freeze()


async def keep_settled(logs_opened: Callable[[], int], settled: Callable[[], None] = settle) -> None:
    """Settle whenever many logs were opened since the last time."""
    seen = logs_opened()
    while True:
        await asyncio.sleep(LOOK_S)
        opened = logs_opened()
        if opened >= seen + MANY_LOGS:
            seen = opened
            settled()
