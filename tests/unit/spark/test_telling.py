"""An error in a worker of Spark's: the cause first, the traceback after it."""

import os
import traceback
from collections.abc import Iterator

import pytest

from odradek.spark.telling import cause_first


@cause_first
class Failing:
    def commit(self) -> None:
        try:
            raise OSError("gone")
        except OSError as e:
            raise ValueError("the cause") from e

    def read(self) -> Iterator[int]:
        yield 1
        raise ValueError("in the middle")

    def stop(self) -> None:
        raise ValueError("not one of Spark's calls with rows")


@pytest.fixture
def in_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_BUFFER_SIZE", "65536")
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


def printed(error: BaseException) -> list[str]:
    """As pyspark.util.handle_worker_exception does it where tracebacks are to be hidden."""
    return "".join(traceback.format_exception_only(type(error), error)).splitlines()


@pytest.mark.usefixtures("in_worker")
def test_the_cause_comes_first_and_the_traceback_after_it() -> None:
    with pytest.raises(ValueError, match="the cause") as raised:
        Failing().commit()
    lines = printed(raised.value)
    assert lines[:2] == ["ValueError: the cause", "Traceback (most recent call last):"]
    assert "OSError: gone" in lines, "and what led to it"
    assert lines[-1] == "ValueError: the cause"
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


@pytest.mark.usefixtures("in_worker")
def test_of_rows_that_are_read_one_after_another_too() -> None:
    rows = Failing().read()
    assert next(rows) == 1
    with pytest.raises(ValueError, match="in the middle") as raised:
        next(rows)
    assert printed(raised.value)[1] == "Traceback (most recent call last):"


def test_elsewhere_errors_are_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_BUFFER_SIZE", raising=False)
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
    with pytest.raises(ValueError, match="the cause") as raised:
        Failing().commit()
    assert printed(raised.value) == ["ValueError: the cause"]
    assert "SPARK_HIDE_TRACEBACK" not in os.environ
