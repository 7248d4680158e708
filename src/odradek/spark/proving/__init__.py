"""Proving exactly-once delivery after the fact: `odradek prove eos`."""
