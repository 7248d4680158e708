"""The native kernel stays inside its buffers: fuzzed under AddressSanitizer where the compiler has it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RECORDS = Path(__file__).parents[2] / "src" / "odradek" / "records"
SKIPPED = 77

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sanitizer is preloaded as on Linux")


def fuzz(kernel: Path, seconds: int) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [Path(__file__).parent / "kernel_asan.sh", str(seconds)],
        env={**os.environ, "PYTHON": sys.executable, "KERNEL": str(kernel)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    return done


def test_kernel_is_clean_under_address_sanitizer() -> None:
    done = fuzz(RECORDS / "_kernel.c", 10)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("header", "sound", "planted"),
    [
        ("read.h", "end - p >= 2", "end - p >= 1"),
        ("read.h", " || size > end - p)", ")"),
        ("rows.h", " || i >= column->elements", ""),
    ],
    ids=["a byte past the end", "a record past the end", "a row past its columns"],
)
def test_a_missing_bound_is_found(tmp_path: Path, header: str, sound: str, planted: str) -> None:
    shutil.copytree(RECORDS / "native", tmp_path / "native")
    shutil.copy(RECORDS / "_kernel.c", tmp_path)
    source = tmp_path / "native" / header
    text = source.read_text()
    assert text.count(sound) == 1
    source.write_text(text.replace(sound, planted))
    done = fuzz(tmp_path / "_kernel.c", 90)  # it ends as soon as it is found
    assert done.returncode != 0
    assert "ERROR: AddressSanitizer" in done.stdout
