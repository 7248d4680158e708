"""Spark looks for modules of this name, and finds the format "odradek" here."""

from odradek.spark.datasource import OdradekSource as DefaultSource

__all__ = ["DefaultSource"]
