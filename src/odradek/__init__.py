"""Odradek: a distributed log that speaks Kafka's protocol and writes Kafka's files.

The version stands here only. pyproject.toml reads it, the command line and the client import it.
"""

__version__ = "0.1.0"
