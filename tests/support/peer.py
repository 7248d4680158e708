"""Apache Kafka's own tools, run through tools/peer; why they cannot run here, when they cannot."""

import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = ROOT / "tools" / "peer" / "peer"
TOOL_TIMEOUT_S = 100
_SHARED = frozenset(
    (
        *("acls", "broker-api-versions", "client-metrics", "cluster", "configs", "consumer-groups"),
        *("delete-records", "dump-log", "features", "get-offsets", "groups", "leader-election", "log-dirs"),
        *("metadata-quorum", "reassign-partitions", "storage", "topics", "transactions"),
    )
)
"""They end by themselves, and read nothing from stdin."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC"
"""A JVM that lives for seconds on few cores: to compile less and collect simply halves its CPU time."""


def missing() -> str | None:
    """What this machine lacks to run Apache Kafka, or None."""
    if not shutil.which("java"):
        return "no java on PATH: Apache Kafka's tools cannot run"
    if not shutil.which("mvn") and not _fetched():
        return "no mvn on PATH: Apache Kafka's jars cannot be fetched"
    return None


def _fetched() -> list[pathlib.Path]:
    home = pathlib.Path(os.environ.get("ODRADEK_PEER_HOME", pathlib.Path.home() / ".cache" / "odradek-peer"))
    return sorted(complete.parent for complete in home.glob("*/jars/.complete"))


def jars() -> pathlib.Path:
    """Fetched, if they are not here yet."""
    subprocess.run([str(PEER), "install"], capture_output=True, timeout=300, check=True)
    return _fetched()[-1]


def archive(jars: pathlib.Path) -> pathlib.Path:
    """Of their classes; peer_classes.py makes it."""
    return jars / "classes.jsa"


def java(main_class: str) -> str:
    """What a class of Apache Kafka's jars prints."""
    command = ["java", "-cp", f"{jars()}/*", main_class]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=True)
    return ran.stdout


def compile_java(classes: pathlib.Path) -> None:
    """Compile the programs of tests/peer/java into a directory."""
    sources = sorted(map(str, (ROOT / "tests" / "peer" / "java").glob("*.java")))
    quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "-nowarn", "-Xlint:none")
    command = ["javac", *quick, "-d", str(classes), "-cp", f"{jars()}/*", *sources]
    subprocess.run(command, capture_output=True, timeout=TOOL_TIMEOUT_S, check=True)


def run_java(classes: pathlib.Path, main_class: str, *args: str) -> str:
    """What one of them prints."""
    fetched = _fetched()[-1]
    ran = subprocess.run(
        [
            *("java", "-Xmx256m", *_QUICK.split()),
            f"-Dlog4j2.configurationFile=file:{fetched}/tools.xml",
            *("-cp", f"{classes}:{fetched}/*", main_class, *args),
        ],
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 0, f"{main_class} exited {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def tool(
    name: str,
    *args: object,
    stdin: str = "",
    timeout_s: float = TOOL_TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run kafka-NAME.sh; stdout and stderr come back apart. Small heap: a test moves kilobytes.

    The tools of administrators share one JVM, which stays until this process ends.
    """
    if name in _SHARED and not stdin and environment is None:
        from tests.support import peer_tools

        told = peer_tools.shared().call(name, *args)
        return subprocess.CompletedProcess([name, *map(str, args)], *told)
    return subprocess.run(
        [str(PEER), "tool", name, *map(str, args)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment or quick(),
        check=False,
    )


def shell_shows(wanted: str, snapshot: pathlib.Path, *words: str) -> str:
    """What the metadata shell prints once it shows what is wanted.

    It may answer before it has read all of the snapshot, and in one of about ten runs it never answers.
    """
    told = ""
    for _ in range(8):
        try:
            done = tool("metadata-shell", "--snapshot", snapshot, *words, timeout_s=15)
        except subprocess.TimeoutExpired:
            continue
        told = done.stdout + done.stderr
        assert done.returncode == 0, told
        if wanted in done.stdout:
            return done.stdout
    raise AssertionError(f"{wanted} is not in what the metadata shell says:\n{told}")


def quick(heap: str = "-Xmx256m", *more: str) -> dict[str, str]:
    """The environment of a JVM that lives for a test."""
    options = [_QUICK, *more]
    fetched = _fetched()
    if fetched and archive(fetched[-1]).exists():
        options += [
            f"-XX:SharedArchiveFile={archive(fetched[-1])}",
            "-Xlog:disable",
            "-Xlog:all=error:stderr",
        ]
    return {**os.environ, "PEER_HEAP_OPTS": heap, "PEER_JVM_OPTS": " ".join(options)}


def start(
    directory: pathlib.Path, port: int, *sets: str, environment: Mapping[str, str] | None = None
) -> str:
    """One Apache node; its bootstrap address. Stop it with `stop`."""
    args = [a for s in sets for a in ("--set", s)]
    out = subprocess.run(
        [str(PEER), "start", "--port", str(port), "--dir", str(directory), *args],
        capture_output=True,
        text=True,
        timeout=180,
        env=environment or quick("-Xmx512m"),
        check=False,
    )
    if out.returncode:
        raise RuntimeError(f"peer start failed: {out.stderr[-2000:]}")
    return out.stdout.strip()


def command(name: str, directory: pathlib.Path, *args: str) -> str:
    """What `peer restart`, `kill` or `status` says of a node that `start` has started."""
    words = [str(PEER), name, *args, "--dir", str(directory)]
    ran = subprocess.run(
        words, capture_output=True, text=True, timeout=120, check=True, env=quick("-Xmx512m")
    )
    return ran.stdout


def stop(directory: pathlib.Path) -> None:
    subprocess.run([str(PEER), "stop", "--dir", str(directory)], capture_output=True, timeout=60, check=True)
