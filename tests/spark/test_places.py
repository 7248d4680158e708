"""One program, unchanged, on local[*], local-cluster, a standalone cluster and Spark Connect."""

import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from odradek.client.blocking import BlockingClient
from tests.spark import anywhere
from tests.spark.clusters import connect_server, environment, standalone
from tests.spark.conftest import read_committed
from tests.spark.driver import ROOT
from tests.spark.test_sink import ids

RECORDS = 2_000
CLASSIC, CONNECT = "pyspark.sql.session", "pyspark.sql.connect.session"

pytestmark = pytest.mark.timeout(300)


@contextmanager
def standalone_program(folder: Path) -> Iterator[tuple[Mapping[str, str], str]]:
    """Its executors get their Python in an archive, as on YARN. The driver has it under the same path."""
    python = folder / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$PWD" >> {folder}/used\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
    packed = {"spark.archives": f"{folder}/environment.tar.gz#environment"}
    with standalone(folder) as master:
        env = environment(folder, master, packed)
        yield {**env, "PYSPARK_PYTHON": "./environment/bin/python"}, master
    places = set((folder / "used").read_text().splitlines())
    assert str(folder) in places and any(place.startswith(f"{folder}/work/") for place in places), places


@contextmanager
def local_cluster_program(folder: Path) -> Iterator[tuple[Mapping[str, str], str]]:
    master = "local-cluster[2,1,1024]"
    yield environment(folder, master), master


@contextmanager
def connect_program(folder: Path) -> Iterator[tuple[Mapping[str, str], str]]:
    """The client knows nothing but the server's address."""
    with connect_server(folder, "local[2]") as remote:
        yield {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_REMOTE": remote}, "local[2]"


class Topics:
    """What the program reads and writes, and what must be there when it has run."""

    def __init__(self, bootstrap: str, make_topic: Callable[..., str], send: Callable[..., None]) -> None:
        self._bootstrap = bootstrap
        self._names = [make_topic(2) for _ in range(3)]
        send(self._names[0], [(str(i), str(i)) for i in range(RECORDS)])

    def arguments(self, folder: Path) -> list[str]:
        return [self._bootstrap, *self._names, str(folder / "checkpoint")]

    def check(self, query: str) -> None:
        source, *sinks = self._names
        for topic in sinks:
            assert ids(read_committed(self._bootstrap, topic)) == Counter(range(RECORDS))
        with BlockingClient(self._bootstrap) as client:
            # The sink was told where the checkpoint is: it has published how far the query is.
            offsets = client.call(client.admin.committed, f"odradek.{query}")
        assert {tp.topic for tp in offsets} == {source}
        assert sum(found.committed_offset for found in offsets.values()) == RECORDS


@pytest.fixture
def topics(bootstrap: str, make_topic: Callable[..., str], send: Callable[..., None]) -> Topics:
    return Topics(bootstrap, make_topic, send)


def test_on_all_cores_of_this_machine(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the session of all tests, which the program finds."""
    anywhere.main(*topics.arguments(tmp_path))
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["session"], found["master"]) == (CLASSIC, "local[*]")
    topics.check(found["query"])


@pytest.mark.parametrize(
    ("program", "session"),
    [(local_cluster_program, CLASSIC), (standalone_program, CLASSIC), (connect_program, CONNECT)],
)
def test_elsewhere(topics: Topics, tmp_path: Path, program: Callable[[Path], Any], session: str) -> None:
    with program(tmp_path) as (env, master):
        ran = subprocess.run(
            [sys.executable, "-m", "tests.spark.anywhere", *topics.arguments(tmp_path)],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
        )
    assert ran.returncode == 0, ran.stderr[-6_000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert (found["session"], found["master"]) == (session, master)
    topics.check(found["query"])
