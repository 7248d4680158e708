"""Spark's official Kafka connector against Odradek, beside ours: both see the same records."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.node import running
from tests.support.topics import create_topic

ROOT = Path(__file__).parents[2]
RECORDS = 5_000


@pytest.fixture(scope="module")
def jars() -> str:
    if not shutil.which("mvn"):
        pytest.skip("no mvn on PATH: the official connector cannot be fetched")
    fetched = subprocess.run([ROOT / "tools/connector/fetch"], capture_output=True, text=True, timeout=300)
    assert fetched.returncode == 0, fetched.stderr
    return fetched.stdout


@pytest.mark.timeout(300)
def test_each_reads_what_the_other_wrote(jars: str, tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        for topic in "abcd":
            create_topic(node.bootstrap, topic, 2, {})
        aborted = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "x"})
        aborted.init_transactions(20)
        aborted.begin_transaction()
        aborted.produce("b", b"aborted")
        aborted.flush(20)
        aborted.abort_transaction(20)
        ran = subprocess.run(
            [sys.executable, "-m", "tests.spark.official", node.bootstrap, jars, str(tmp_path / "spark")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=250,
        )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    for reader in ("odradek", "kafka"):
        for topic in "abcd":
            assert found[f"{reader} {topic}"] == [RECORDS, RECORDS], (reader, topic)
    ours, theirs = found["schemas"]
    assert ours == theirs
    assert found["differing rows"] == [0, 0]
    refused = {name: told for name, told in found.items() if name.startswith("refused")}
    assert len(refused) == 3
    assert set(map(tuple, refused.values())) == {(True, True)}, refused
