"""The group coordinator: members, generations and committed offsets, in shards over `__consumer_offsets`."""
