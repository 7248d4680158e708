"""Spark looks for modules of this name, and finds the format "odradek.segments" here."""

from odradek.spark.datasource import SegmentsSource as DefaultSource

__all__ = ["DefaultSource"]
