"""The stream of orders: at a fixed rate, in pieces, each acknowledged before the next is sent."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice

from odradek.client.client import Client
from odradek.client.producer import Producer
from odradek.spark.demo.orders import ORDERS, Order

_PIECE = 50
"""So that no partition is ahead of another by more than a watermark can bear, when a broker dies."""


async def produce(
    client: Client, orders: Iterable[Order], per_second: float, acknowledged: Callable[[int], None]
) -> None:
    """Idempotent: what is sent again because a broker died is in the log once."""
    loop = asyncio.get_running_loop()
    remaining = iter(orders)
    due_s = loop.time()
    async with Producer(client) as producer:
        while piece := list(islice(remaining, _PIECE)):
            sent = [await producer.send(ORDERS, order.value, key=order.key) for order in piece]
            await asyncio.gather(*sent)
            acknowledged(len(piece))
            # A stream that was held up does not hurry afterwards: customers do not, either.
            due_s = max(due_s + len(piece) / per_second, loop.time())
            await asyncio.sleep(due_s - loop.time())
