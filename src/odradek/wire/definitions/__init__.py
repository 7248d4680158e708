"""The layout of every message of Kafka's protocol, one module per API, loaded when first used.

Facts only, derived from kio's schemas; tests/unit/wire holds each version to kio's own reader and writer.
"""
