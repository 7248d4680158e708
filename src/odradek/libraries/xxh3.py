"""XXH3, 64 bits, seed 0, default secret: the hash by which Kafka tells whether a group's topics changed.

Only what fits in memory at once; every length has its own way of mixing, as the algorithm prescribes.
What is long is mixed block by block, as paced work.
"""

import struct

from odradek.runtime.slices import FEW, STEP, Paced

_MASK = (1 << 64) - 1
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

_STRIPE_BYTES = 64
_SECRET_STEP = 8
_STRIPES_PER_BLOCK = (len(_SECRET) - _STRIPE_BYTES) // _SECRET_STEP
_BLOCK_BYTES = _STRIPE_BYTES * _STRIPES_PER_BLOCK
_LANES = struct.Struct("<8Q")


def xxh3_64(data: bytes) -> Paced[int]:
    """The hash as an unsigned number."""
    n = len(data)
    yield STEP + n // 4 if n <= 240 else STEP
    if n <= 16:
        return _short(data)
    if n <= 128:
        return _up_to_128(data)
    if n <= 240:
        return _up_to_240(data)
    return (yield from _long(data))


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _xor_shift(value: int, bits: int) -> int:
    return value ^ (value >> bits)


def _avalanche(h: int) -> int:
    h = _xor_shift(h, 37) * _MX1 & _MASK
    return _xor_shift(h, 32)


def _avalanche_64(h: int) -> int:
    h = _xor_shift(h, 33) * _P64_2 & _MASK
    h = _xor_shift(h, 29) * _P64_3 & _MASK
    return _xor_shift(h, 32)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _short(data: bytes) -> int:
    n = len(data)
    if n > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, n - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((n + swapped + high + _fold(low, high)) & _MASK)
    if n >= 4:
        mixed = (_u32(data, n - 4) + (_u32(data, 0) << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        h = mixed ^ _rotate(mixed, 49) ^ _rotate(mixed, 24)
        h = h * _MX2 & _MASK
        h ^= (h >> 35) + n
        h = h * _MX2 & _MASK
        return _xor_shift(h, 28)
    if n:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return _avalanche_64(combined ^ (_u32(_SECRET, 0) ^ _u32(_SECRET, 4)))
    return _avalanche_64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mix_16(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _up_to_128(data: bytes) -> int:
    n = len(data)
    acc = n * _P64_1
    for i in range((n - 1) // 32, -1, -1):
        acc += _mix_16(data, 16 * i, 32 * i) + _mix_16(data, n - 16 * (i + 1), 32 * i + 16)
    return _avalanche(acc & _MASK)


def _up_to_240(data: bytes) -> int:
    n = len(data)
    acc = n * _P64_1
    for i in range(8):
        acc += _mix_16(data, 16 * i, 16 * i)
    acc = _avalanche(acc & _MASK)
    for i in range(8, n // 16):
        acc += _mix_16(data, 16 * i, 16 * (i - 8) + 3)
    acc += _mix_16(data, n - 16, 136 - 17)
    return _avalanche(acc & _MASK)


def _long(data: bytes) -> Paced[int]:
    n = len(data)
    acc = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    blocks = (n - 1) // _BLOCK_BYTES
    for block in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            at = block * _BLOCK_BYTES + stripe * _STRIPE_BYTES
            _accumulate(acc, data, at, stripe * _SECRET_STEP)
        _scramble(acc)
        yield _STRIPES_PER_BLOCK * 2 * FEW
    left = blocks * _BLOCK_BYTES
    for stripe in range((n - 1 - left) // _STRIPE_BYTES):
        _accumulate(acc, data, left + stripe * _STRIPE_BYTES, stripe * _SECRET_STEP)
    _accumulate(acc, data, n - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    result = n * _P64_1
    for i in range(4):
        result += _fold(acc[2 * i] ^ _u64(_SECRET, 11 + 16 * i), acc[2 * i + 1] ^ _u64(_SECRET, 19 + 16 * i))
    return _avalanche(result & _MASK)


def _accumulate(acc: list[int], data: bytes, at: int, secret_at: int) -> None:
    lanes = _LANES.unpack_from(data, at)
    keys = _LANES.unpack_from(_SECRET, secret_at)
    for i in range(8):
        keyed = lanes[i] ^ keys[i]
        acc[i ^ 1] = (acc[i ^ 1] + lanes[i]) & _MASK
        acc[i] = (acc[i] + (keyed & 0xFFFFFFFF) * (keyed >> 32)) & _MASK


def _scramble(acc: list[int]) -> None:
    keys = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
    for i in range(8):
        acc[i] = (_xor_shift(acc[i], 47) ^ keys[i]) * _P32_1 & _MASK
