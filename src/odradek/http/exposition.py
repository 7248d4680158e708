"""Metric families as Prometheus text, a little at a time: a scrape of many partitions never holds the loop.

The text is prometheus-client's own; this file only cuts the work into pieces.
"""

import asyncio
from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
SAMPLES_AT_ONCE = 50  # of up to fifty calls each: a quarter of a slice


class _One(Collector):
    """A registry of one family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def pieces(families: Iterable[Metric | None]) -> Iterator[bytes]:
    """The exposition in pieces of bounded work; joined they are what generate_latest gives.

    None instead of a family is a piece of work that gave no text yet.
    """
    for family in families:
        if family is None:
            yield b""
            continue
        samples, family.samples = family.samples, []
        yield generate_latest(_One(family))
        for start in range(0, len(samples), SAMPLES_AT_ONCE):
            family.samples = samples[start : start + SAMPLES_AT_ONCE]
            text = generate_latest(_One(family))
            yield text.split(b"\n", 2)[2]  # without the HELP and TYPE that stand above already


async def render(families: Iterable[Metric | None]) -> bytes:
    out = []
    for piece in pieces(families):
        out.append(piece)
        await asyncio.sleep(0)
    return b"".join(out)
