"""CPU time of short commands against a node: what a script pays for each, most of it imports.

`python benchmarks/command_line.py [ODRADEK]` measures that command, by default the one of this environment.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 15
TOPIC = "t"
COMMANDS = (
    ("--version",),
    ("topic", "list"),
    ("topic", "describe", TOPIC),
    ("group", "list"),
    ("consume", TOPIC),
)


def cpu_ms(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    odradek = sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).with_name("odradek"))
    with tempfile.TemporaryDirectory() as data:
        start = [odradek, "start", "--port", "0", "--http", "off", "--data-dir", data]
        node = subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert node.stdout is not None
            address = node.stdout.readline().partition(" ready: ")[2].partition(",")[0]
            connect = ["-b", address]
            subprocess.run(
                [odradek, "topic", "create", TOPIC, *connect, "-q"], stdout=subprocess.DEVNULL, check=True
            )
            for command in COMMANDS:
                line = [odradek, *command, *(connect if command != ("--version",) else [])]
                took = sorted(cpu_ms(line) for _ in range(RUNS))
                spread = f"({took[0]:.0f}-{took[-1]:.0f})"
                print(f"odradek {' '.join(command)}: {statistics.median(took):.0f} ms {spread}")
        finally:
            node.terminate()
            node.wait()


if __name__ == "__main__":
    main()
