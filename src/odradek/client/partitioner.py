"""Which partition a record goes to: by its key as Java clients do (murmur2), without a key in turn. Pure."""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash that Kafka's Java client takes of keys, as an unsigned number."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The place in the list of all partitions, leaderless ones included, so that a key stays where it is."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
