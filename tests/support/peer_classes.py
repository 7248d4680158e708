"""An archive of Apache Kafka's classes, with which its nodes and tools start in half the CPU time.

`make test` makes it once, beside the jars (`python -m tests.support.peer_classes`). Tests pass without it.
"""

import subprocess
import tempfile
from pathlib import Path

from odradek.runtime.ports import free_port
from tests.support import peer


def make(jars: Path, archive: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        names = Path(scratch) / "names"
        names.write_text("\n".join(_loaded(Path(scratch))))
        made = archive.with_name("new.jsa")
        command = [
            *("java", "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={names}"),
            *(f"-XX:SharedArchiveFile={made}", "-cp", f"{jars}/*"),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        made.rename(archive)


def _loaded(scratch: Path) -> list[str]:
    """The names of the classes that a node and some tools need."""
    noted = peer.quick("-Xmx512m", f"-XX:DumpLoadedClassList={scratch}/loaded-%p")
    address = peer.start(scratch / "node", free_port(), environment=noted)
    try:
        at = ("--bootstrap-server", address, "--topic", "t")
        for words, stdin in (
            (("topics", "--create", *at), ""),
            (("console-producer", *at), "value\n"),
            (("console-consumer", *at, "--from-beginning", "--max-messages", 1), ""),
        ):
            done = peer.tool(*words, stdin=stdin, environment=noted)
            assert done.returncode == 0, done.stderr
    finally:
        peer.stop(scratch / "node")
    lines = [line for path in scratch.glob("loaded-*") for line in path.read_text().splitlines()]
    # Ids are for classes of other class loaders, which have a source and are left out.
    return list(dict.fromkeys(line.partition(" id:")[0] for line in lines if " source:" not in line))


if __name__ == "__main__" and peer.missing() is None:
    found = peer.jars()
    if not peer.archive(found).exists():
        make(found, peer.archive(found))
        print(f"made {peer.archive(found)}: {peer.archive(found).stat().st_size >> 20} MB")
