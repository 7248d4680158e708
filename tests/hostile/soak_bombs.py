"""`make soak-bombs`: batches that decompress to far more than they are, or lie about it.

Each is produced on one connection, then on many at once, to a node in its own process. The script reports the
answer, the time, the memory of the node, and how long short requests of a second connection waited.
"""

import argparse
import gzip
import struct
import threading
from collections import Counter
from collections.abc import Iterator

import cramjam

from odradek.core.errors import ErrorCode
from odradek.records import compression
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import parse_response_header
from odradek.wire.messages import response_decoder
from tests.hostile.sides import Process, odradek
from tests.hostile.soak import HEAD, observed
from tests.hostile.world import World
from tests.support.batches import batch, record, varint
from tests.support.produce import produce_values
from tests.support.raw import request_bytes
from tests.unit.records.test_compression import BOMBS, FOUR_GIB, LIARS

GIB = 1 << 30
MANY = 16
ASK_S = 120.0


def one_record_of(size: int) -> bytes:
    """A record whose value is so many zeros."""
    body = b"\0" + varint(0) + varint(0) + varint(-1) + varint(size) + bytes(size) + varint(0)
    return varint(len(body)) + body


def bombs() -> Iterator[tuple[str, int, bytes]]:
    """Name, codec and compressed records; sound ones first."""
    sound = one_record_of(GIB)
    yield "gzip of 1 GiB, one record", compression.GZIP, gzip.compress(sound, 1, mtime=0)
    yield "zstd of 1 GiB, one record", compression.ZSTD, bytes(cramjam.zstd.compress(sound, 3))
    yield "lz4 of 1 GiB, one record", compression.LZ4, compression.compress(compression.LZ4, sound)
    small = sound[: 100 << 20]
    yield "snappy of 100 MiB", compression.SNAPPY, compression.compress(compression.SNAPPY, small)
    yield "snappy of 100 MiB, bare", compression.SNAPPY, bytes(cramjam.snappy.compress_raw(small))
    tiny = b"".join(record(i, b"") for i in range(1_000_000))
    yield "zstd of 1,000,000 records", compression.ZSTD, bytes(cramjam.zstd.compress(tiny, 3))
    for name, (codec, build) in BOMBS.items():
        yield f"{name}, no records", codec, build()
    for name, (codec, lie) in LIARS.items():
        yield f"{name}: claims 10, holds 8 MiB", codec, lie(10, bytes(8 << 20))
        yield f"{name}: claims 4 GiB, holds nothing", codec, lie(FOUR_GIB - 1, b"")


def answered(process: Process, client: object, frame: bytes) -> str:
    try:
        answer = process.ask(client, frame)  # type: ignore[arg-type]
    except (OSError, struct.error) as e:
        return type(e).__name__
    if answer is None:
        return "closed"
    _, position = parse_response_header(answer, 0, ApiKey.PRODUCE, 9)
    decoded = response_decoder(ApiKey.PRODUCE, 9)(answer, position)[0]
    return ErrorCode(decoded.responses[0].partition_responses[0].error_code).name


def throw(world: World, frame: bytes, connections: int) -> str:
    """Produce on so many connections at once."""
    process: Process = world.place
    outcomes: Counter[str] = Counter()

    def one() -> None:
        with process.client() as client:
            outcomes[answered(process, client, frame)] += 1

    throwers = [threading.Thread(target=one) for _ in range(connections)]
    for thrower in throwers:
        thrower.start()
    for thrower in throwers:
        thrower.join()
    return ", ".join(outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak-bombs", description=__doc__)
    parser.add_argument("--many", type=int, default=MANY, help="connections at once (default: %(default)s)")
    args = parser.parse_args()
    print(f"{'':<44}{'bytes':>11}  {HEAD} | {args.many} at once: {HEAD}")
    with odradek(ASK_S) as world:
        with world.place.client() as client:
            world.create_topics(client, ["bombed"])
            settings = {"name": "max.message.bytes", "config_operation": 0, "value": str(90 << 20)}
            resource = {"resource_type": 2, "resource_name": "bombed", "configs": [settings]}
            altered = request_bytes(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
            assert world.place.ask(client, altered) is not None
        for name, codec, payload in bombs():
            count = 1_000_000 if "records" in name and "no" not in name else 1
            sent = batch(payload=payload, count=count, attributes=codec)
            frame = request_bytes(ApiKey.PRODUCE, 9, produce_values("bombed", sent))
            alone = observed(world, lambda frame=frame: throw(world, frame, 1))
            many = observed(world, lambda frame=frame: throw(world, frame, args.many))
            print(f"{name:<44}{len(payload):>11,}  {alone} | {many}", flush=True)


if __name__ == "__main__":
    main()
