"""Apache Kafka's tools in one JVM that stays: a call costs a tenth of what it does in a JVM of its own."""

import atexit
import subprocess
import threading
from functools import cache
from typing import IO, NamedTuple

from tests.support import peer

_PROGRAM = peer.ROOT / "tests" / "peer" / "java" / "ToolLoop.java"


class Told(NamedTuple):
    code: int
    stdout: str
    stderr: str


class Tools:
    """`call` runs kafka-NAME.sh; not the metadata shell, which does not return there."""

    def __init__(self) -> None:
        jars = peer.jars()
        options = peer.quick()["PEER_JVM_OPTS"].split()
        listed = subprocess.run([str(peer.PEER), "tools"], capture_output=True, text=True, check=True).stdout
        self._classes = dict(line.split() for line in listed.splitlines())
        self._process = subprocess.Popen(
            [
                *("java", "-Xmx256m", *options, f"-Dlog4j2.configurationFile=file:{jars}/tools.xml"),
                *("-cp", f"{jars}/*", str(_PROGRAM)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def call(self, name: str, *arguments: object) -> Told:
        words = [self._classes[name], *map(str, arguments)]
        assert not any("\t" in word or "\n" in word for word in words), words
        told = self._out
        watch = threading.Timer(peer.TOOL_TIMEOUT_S, self._process.kill)
        watch.start()
        try:
            self._in.write("\t".join(words).encode() + b"\n")
            self._in.flush()
            head = told.readline().split()
            assert head, f"{name} did not end within {peer.TOOL_TIMEOUT_S} s"
            code, *lengths = map(int, head)
            out, err = (told.read(length).decode() for length in lengths)
        finally:
            watch.cancel()
        return Told(code, out, err)

    def run(self, name: str, *arguments: object) -> str:
        """What a tool prints; it must succeed."""
        told = self.call(name, *arguments)
        assert told.code == 0, f"{name} exited {told.code}\n{told.stdout}\n{told.stderr}"
        return told.stdout

    @property
    def _in(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _out(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@cache
def shared() -> Tools:
    """For all tests of this process."""
    started = Tools()
    atexit.register(started.close)
    return started
