"""What the files of metric families share: how long a look is, and the simplest of families."""

from prometheus_client.core import GaugeMetricFamily

ROWS_AT_ONCE = 25
"""Rows of a dozen samples between two pauses: a quarter of a slice."""


def gauge(name: str, documentation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, value)
