"""The examples do what they say, the second time too. They pass against Apache Kafka as well."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.examples.running import EXAMPLES, TIMEOUT_S, run
from tests.support.command import odradek

Unique = Callable[[str], str]


def test_what_is_produced_is_consumed_once_by_a_group(bootstrap: str, unique: Unique) -> None:
    given = ("-b", bootstrap, "--topic", unique("orders"), "--group", unique("billing"))
    for _ in range(2):
        consumed = [line for line in run("produce_and_consume.py", *given) if line.startswith("consumed")]
        assert consumed == ["consumed ada = 42", "consumed bob = 7", "consumed ada = 8"]


def test_readers_at_read_committed_see_no_aborted_transfer(bootstrap: str, unique: Unique) -> None:
    given = ("-b", bootstrap, "--topic", unique("transfers"))
    assert run("transaction.py", *given)[-2:] == [
        "read_committed: ada -10, bob +10",
        "read_uncommitted: ada -10, bob +10, ada -99",
    ]
    assert run("transaction.py", *given)[-2] == "read_committed: ada -10, bob +10, ada -10, bob +10"


def test_orders_are_transformed_exactly_once(bootstrap: str, unique: Unique) -> None:
    source, sink = unique("orders"), unique("taxed")
    for _ in range(2):
        lines = run("consume_transform_produce.py", "-b", bootstrap, "--source", source, "--sink", sink)
        committed = [line.split()[1] for line in lines if line.startswith("committed")]
        assert sum(map(int, committed)) == 3
    written = odradek("consume", sink, "-b", bootstrap, "--isolation", "read_committed", "-f", "%v\\n")
    assert sorted(written.text.split()) == sorted(["50.40", "8.40", "9.60"] * 2)


def test_the_sample_application_passes_its_tests() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("pytest"), "-q", "-p", "no:cacheprovider", "examples/sample_app"],
        cwd=EXAMPLES.parent, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_page_of_the_examples_lists_all_of_them() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert [p.name for p in EXAMPLES.glob("*.py") if f"`python examples/{p.name}`" not in page] == []
