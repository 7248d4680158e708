"""Apache Kafka's own tools, run through tools/peer; why they cannot run here, when they cannot."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = ROOT / "tools" / "peer" / "peer"
TOOL_TIMEOUT_S = 100


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


def java(main_class: str) -> str:
    """What a class of Apache Kafka's jars prints."""
    subprocess.run([str(PEER), "install"], capture_output=True, timeout=300, check=True)
    command = ["java", "-cp", f"{_fetched()[-1]}/*", main_class]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=True)
    return ran.stdout


def compile_java(classes: pathlib.Path) -> None:
    """Compile the programs of tests/peer/java into a directory."""
    subprocess.run([str(PEER), "install"], capture_output=True, timeout=300, check=True)
    sources = sorted(map(str, (ROOT / "tests" / "peer" / "java").glob("*.java")))
    quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "-nowarn", "-Xlint:none")
    command = ["javac", *quick, "-d", str(classes), "-cp", f"{_fetched()[-1]}/*", *sources]
    subprocess.run(command, capture_output=True, timeout=TOOL_TIMEOUT_S, check=True)


def run_java(classes: pathlib.Path, main_class: str, *args: str) -> str:
    """What one of them prints."""
    jars = _fetched()[-1]
    ran = subprocess.run(
        [
            *("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            f"-Dlog4j2.configurationFile=file:{jars}/tools.xml",
            *("-cp", f"{classes}:{jars}/*", main_class, *args),
        ],
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 0, f"{main_class} exited {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def tool(
    name: str, *args: object, stdin: str = "", timeout_s: float = TOOL_TIMEOUT_S
) -> "subprocess.CompletedProcess[str]":
    """Run kafka-NAME.sh; stdout and stderr come back apart. Small heap: a test moves kilobytes."""
    return subprocess.run(
        [str(PEER), "tool", name, *map(str, args)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={
            **os.environ,
            "PEER_HEAP_OPTS": "-Xmx256m",
            "PEER_JVM_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
        check=False,
    )


def start(directory: pathlib.Path, port: int, *sets: str) -> str:
    """One Apache node; its bootstrap address. Stop it with `stop`."""
    args = [a for s in sets for a in ("--set", s)]
    out = subprocess.run(
        [str(PEER), "start", "--port", str(port), "--dir", str(directory), *args],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if out.returncode:
        raise RuntimeError(f"peer start failed: {out.stderr[-2000:]}")
    return out.stdout.strip()


def stop(directory: pathlib.Path) -> None:
    subprocess.run([str(PEER), "stop", "--dir", str(directory)], capture_output=True, timeout=60, check=True)
