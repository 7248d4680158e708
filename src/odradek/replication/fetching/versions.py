"""The versions of a follower's requests, by metadata.version. Pure.

A follower does not ask its leader for versions: a metadata.version is finalized only if every broker supports
it. All of these Fetch versions report diverging epochs and name topics by id.
"""

# (the first metadata.version, the version), the newest first
_FETCH = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14))
_LIST_OFFSETS = ((29, 11), (25, 10), (21, 9), (9, 8))
_OLDEST_FETCH = 13
_OLDEST_LIST_OFFSETS = 7


def fetch_version(metadata_version: int) -> int:
    return next((version for level, version in _FETCH if metadata_version >= level), _OLDEST_FETCH)


def list_offsets_version(metadata_version: int) -> int:
    found = (version for level, version in _LIST_OFFSETS if metadata_version >= level)
    return next(found, _OLDEST_LIST_OFFSETS)
