"""What the documents show runs as it stands there, and what they list is what there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from odradek.client.blocking import BlockingClient
from odradek.core.types import TopicPartition
from odradek.testing import Broker
from tests.support.type_checking import pyright

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]


def examples(document: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)


TESTS = [
    pytest.param(example, id=re.findall(r"def (test_\w+)", example)[0])
    for document in ("README.md", "docs/testing.md")
    for example in examples(document)
    if "def test_" in example
]
SCRIPTS = [example for example in examples("docs/testing.md") if "def test_" not in example]


@pytest.mark.parametrize("example", TESTS)
def test_a_documented_test_passes(run, example):
    run(example).assert_outcomes(passed=example.count("def test_"))


@pytest.mark.parametrize("example", SCRIPTS)
def test_a_documented_script_runs(example):
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_type_checker_finds_nothing_in_the_annotated_examples(tmp_path):
    annotated = [example for example in examples("docs/testing.md") if "from odradek.testing" in example]
    for i, example in enumerate(annotated):
        (tmp_path / f"example_{i}.py").write_text(example)
    assert len(annotated) == 3
    assert pyright(tmp_path) == (0, "0 errors, 0 warnings, 0 informations")


def test_the_testing_page_names_every_part_of_the_fixture():
    from odradek.testing.kafka import Kafka

    page = (ROOT / "docs/testing.md").read_text()
    users = {name for name in vars(Kafka) if not name.startswith("_")} - {"close", "log", "made"}
    assert [name for name in sorted(users | {"server"}) if not re.search(rf"^\| `{name}\b", page, re.M)] == []


def exported() -> dict[str, set[str]]:
    """The labels of each metric of a node that has a topic, a group and a transactional id."""
    from odradek.http.app import App
    from odradek.http.message import Request

    with Broker() as broker, BlockingClient(broker.bootstrap_servers) as client:
        client.call(client.admin.create_topics, {"t": 1})
        with client.producer() as producer:
            producer.deliver("t", b"v")
        client.call(client.admin.commit, "g", {TopicPartition("t", 0): 1})
        Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"}).init_transactions()
        text = broker.run(App(broker.node)(Request("GET", "/metrics", True))).body.decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert family.samples, name
        found[name] = {key for sample in family.samples for key in sample.labels} - {"quantile", "le"}
    return found


def test_the_metrics_page_lists_what_a_node_exports():
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]*?) ?\| (.+) \|$", (ROOT / "docs/metrics.md").read_text(), re.M)
    listed = {name: set(filter(None, labels.split(", "))) for name, labels, _ in rows}
    assert len(listed) == len(rows)
    assert listed == exported()
