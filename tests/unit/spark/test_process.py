"""What a worker process keeps from one call to the next."""

import subprocess
import sys

_PROGRAM = """
import gc
from odradek.spark.process import freeze_what_is_loaded

counts = []
for _ in range(4):
    freeze_what_is_loaded()
    counts.append(gc.get_freeze_count())
print(*counts)
"""


def test_what_is_loaded_is_set_aside_once() -> None:
    """In a process of its own: it holds for the whole of it."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    first, second, third, fourth = map(int, done.stdout.split())
    assert first == 0, "the first call loads what is loaded late"
    assert second > 5_000
    assert second >= third >= fourth, "what a call leaves behind must be collected"
