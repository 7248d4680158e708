"""What pyright says of files that use the package. It comes with its own Node.js and fetches nothing."""

import os
import subprocess
import sys
from pathlib import Path


def pyright(folder: Path) -> tuple[int, str]:
    """Its exit code, and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(folder)],
        cwd=folder,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout.strip() + done.stderr
