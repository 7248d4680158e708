"""The group coordinator: members, generations and committed offsets, as shards of `__consumer_offsets`."""
