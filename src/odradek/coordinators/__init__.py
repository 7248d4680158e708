"""Coordinators: one shard per partition of an internal topic that this node leads, and the host that runs
them."""
