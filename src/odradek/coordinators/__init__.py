"""Coordinators: shards over internal topics, one per partition led here, and the host that runs them."""
