"""Golden data: what Apache Kafka 4.3.1 wrote, unpacked for tests. Nothing here judges it.

`clean` is a data directory after a clean stop, `crashed` the same one after kill -9; `expected` is what a
real consumer read from it; `dumps` are the texts of Apache's own dump-log over the clean copy. `legacy` are
segments of magic 0 and 1 that kafka-clients' record builder wrote (legacy/LegacySegments.java).
"""

import functools
import gzip
import json
import tarfile
from pathlib import Path
from typing import Any, Literal

DATA = Path(__file__).parent / "data"
Archive = Literal["clean", "crashed", "dumps", "legacy"]


def files(archive: Archive, prefix: str = "", suffix: str = "") -> dict[str, bytes]:
    """Files by their path inside the data directory, sorted: files("clean", "txn-0/", ".log").

    Of the crashed directory ask only for what is needed: its indexes are sparse and hold 500 MB of zeros.
    """
    found = {}
    with tarfile.open(DATA / f"{archive}.tar.gz") as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            if member.isfile() and name.startswith(prefix) and name.endswith(suffix):
                content = tar.extractfile(member)
                assert content is not None
                found[name] = content.read()
    return dict(sorted(found.items()))


@functools.cache
def segments(archive: Archive, topic_partition: str) -> tuple[bytes, ...]:
    """The .log files of a partition ("txn-0") in offset order."""
    return tuple(files(archive, f"{topic_partition}/", ".log").values())


def unpack(archive: Archive, into: Path, prefix: str = "") -> Path:
    """A fresh, writable copy of the directory, holes kept; gives the one that holds meta.properties."""
    with tarfile.open(DATA / f"{archive}.tar.gz") as tar:
        chosen = [m for m in tar if m.name.partition("/")[2].startswith(prefix)]
        tar.extractall(into, members=chosen, filter="data")
        return into / chosen[0].name.partition("/")[0]


@functools.cache
def expected() -> dict[str, Any]:
    """What a consumer read: `topics[name]["read_uncommitted"]`, a list of records, and `group_offsets`."""
    loaded: dict[str, Any] = json.loads(gzip.decompress((DATA / "expected.json.gz").read_bytes()))
    return loaded


@functools.cache
def legacy() -> dict[str, Any]:
    """What kafka-clients itself read from the legacy segments: batches and records by partition."""
    loaded: dict[str, Any] = json.loads(gzip.decompress((DATA / "legacy.json.gz").read_bytes()))
    return loaded
