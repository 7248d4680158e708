"""Whom to kill when: the plan, the moments that are waited for, and what a kill has interrupted."""

import asyncio
from pathlib import Path
from typing import NamedTuple

from odradek.client.admin import Admin
from odradek.client.client import Client
from odradek.spark.demo.stage import NAME, SINKS, read_query_id, read_reached
from odradek.spark.demo.story import BROKER, DRIVER
from odradek.spark.demo.watching import count_open, read_decisions

WRITTEN, DECIDED = "written", "decided"
"""Tasks have written, and their transactions are open; the batch is decided, and Spark does not know yet."""

_SINK = "enriched"
_PAUSE_S = 0.005
_LONGEST_S = 5.0


class Planned(NamedTuple):
    target: str
    due: int
    """How many enriched orders are committed before."""
    moment: str


def plan_kills(orders: int, driver_kills: int, broker_kills: int) -> list[Planned]:
    """Driver and broker in turn, spread over the stream; a driver in one moment and in the other."""
    targets: list[str] = []
    for i in range(max(driver_kills, broker_kills)):
        targets += [DRIVER] * (i < driver_kills) + [BROKER] * (i < broker_kills)
    planned: list[Planned] = []
    for i, target in enumerate(targets):
        drivers = targets[:i].count(DRIVER)
        point = DECIDED if target == DRIVER and drivers % 2 else WRITTEN
        planned.append(Planned(target, orders * (i + 1) // (len(targets) + 1), point))
    return planned


async def moment(client: Client, folder: Path, wanted: str) -> None:
    """Returns in the moment. One that is not caught for long is not waited for: any will do."""
    try:
        async with asyncio.timeout(_LONGEST_S):
            await (_decided(client) if wanted == DECIDED else _written(client, folder))
    except TimeoutError:
        return


async def _written(client: Client, folder: Path) -> None:
    query_id = read_query_id(folder, _SINK)
    while query_id is not None:
        if read_reached(folder, _SINK).under_way and await count_open(client, query_id):
            return
        await asyncio.sleep(_PAUSE_S)


async def _decided(client: Client) -> None:
    """A decision carries the offsets of its batch, for the query's group."""
    before = await _position(client)
    while await _position(client) == before:
        await asyncio.sleep(_PAUSE_S)


async def _position(client: Client) -> int:
    committed = await Admin(client).committed(f"{NAME}.{_SINK}")
    return sum(int(found.committed_offset) for found in committed.values())


async def describe_driver(client: Client, folder: Path) -> str:
    """At which point a driver was killed that is dead now: what it has left tells."""
    left = 0
    for sink in SINKS:
        query_id = read_query_id(folder, sink)
        left += 0 if query_id is None else await count_open(client, query_id)
    return f"{await _point(client, folder)}, {left} transaction{'' if left == 1 else 's'} left open"


async def _point(client: Client, folder: Path) -> str:
    query_id, reached = read_query_id(folder, _SINK), read_reached(folder, _SINK)
    decided = {(stream.query, decision.batch) for stream, decision in await read_decisions(client)}
    if reached.under_way and (query_id, reached.begun) in decided:
        return f"after batch {reached.begun} was decided, before Spark knew"
    return describe_query(folder)


def describe_query(folder: Path) -> str:
    reached = read_reached(folder, _SINK)
    if reached.begun is None:
        return "before the first batch"
    where = "in the middle of" if reached.under_way else "after"
    return f"{where} batch {reached.begun}"
