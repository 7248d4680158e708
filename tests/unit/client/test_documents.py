"""What docs/client.md shows runs as it stands there, and what it lists is what there is."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import odradek.client
from odradek.testing import Broker
from tests.support.client_states import DOCUMENT, written
from tests.support.type_checking import pyright

EXAMPLES = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(example: str, bootstrap: str) -> None:
    assert "localhost:9092" in example
    done = subprocess.run(
        [sys.executable, "-c", example.replace("localhost:9092", bootstrap)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_type_checker_finds_nothing_in_the_examples(tmp_path: Path) -> None:
    for i, example in enumerate(EXAMPLES):
        (tmp_path / f"example_{i}.py").write_text(f"# pyright: strict\n{example}")
    assert pyright(tmp_path) == (0, "0 errors, 0 warnings, 0 informations")


def test_the_table_of_states_is_the_codes_own() -> None:
    assert DOCUMENT.read_text() == written()


def test_everything_public_is_there_and_documented() -> None:
    for name in odradek.client._HOMES:
        assert getattr(odradek.client, name) is not None
    page = DOCUMENT.read_text()
    unnamed = {"ConsumerRecord", "State", "GroupMetadata", "Delivery", "READ_UNCOMMITTED"}
    assert [name for name in odradek.client._HOMES if name not in page and name not in unnamed] == []
