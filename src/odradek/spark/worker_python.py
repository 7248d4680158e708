"""`odradek-python`: Python for Spark's workers, without what Spark adds to its path.

Spark adds an archive with a copy of PySpark. Every process that imports it compiles its modules again, which
takes most of a second for each of the dozen Python processes of a query. The modules of the installed PySpark
are compiled already.
"""

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

COMMAND = "odradek-python"


def main() -> None:
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], without_archives(os.environ, _installed()))


def find() -> str:
    """The command, or this Python where it is not installed."""
    command = Path(sysconfig.get_path("scripts"), COMMAND)
    return str(command) if os.access(command, os.X_OK) else sys.executable


def without_archives(environment: Mapping[str, str], pyspark: Path) -> dict[str, str]:
    """An archive that is not of this PySpark stays: its Spark may be another version."""
    folder = pyspark / "python" / "lib"
    path = environment.get("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in path if entry and Path(entry).parent != folder]
    rest = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    return {**rest, "PYTHONPATH": os.pathsep.join(kept)} if kept else rest


def _installed() -> Path:
    return Path(sysconfig.get_path("purelib"), "pyspark")
