"""The pieces of an exposition are, joined, what prometheus-client writes in one go."""

import asyncio

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest

from odradek.http.exposition import SAMPLES_AT_ONCE, pieces, render


class Registry:
    def collect(self):
        many = GaugeMetricFamily("many", "a gauge of many", labels=["topic", "partition"])
        for i in range(3 * SAMPLES_AT_ONCE + 1):
            many.add_metric(['a "quoted"\nname', str(i)], i)
        stalls = HistogramMetricFamily("stalls", "a histogram")
        stalls.add_metric([], [("0.1", 1), ("+Inf", 2)], 3.5)
        return [CounterMetricFamily("one", "a counter", 1), many, stalls, GaugeMetricFamily("none", "empty")]


def test_joined_they_are_the_whole():
    assert b"".join(pieces(Registry().collect())) == generate_latest(Registry())


def test_a_large_family_is_cut():
    assert len(list(pieces(Registry().collect()))) >= 4 + 5


def test_rendering_lets_the_loop_run_between_pieces():
    async def run():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(count())
        text = await render(Registry().collect())
        other.cancel()
        assert text == generate_latest(Registry())
        assert turns >= 9

    asyncio.run(run())
