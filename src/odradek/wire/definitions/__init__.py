"""The layouts of all messages of Kafka's protocol, one module per API, loaded at the first use.

They were derived from kio's schemas. tests/unit/wire compares each version with kio's own reader and writer.
"""
