"""What `odradek cluster format` wrote, read by Apache Kafka's storage tool and its dump-log."""

import json
import re
from pathlib import Path

import pytest

from tests.support import peer
from tests.support.command import odradek

pytestmark = pytest.mark.apache

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
VOTERS = {1: ("JEXY6aqzQY-32P5TStzaFg", 19093), 2: ("MvDxzVmcRsaTz33bUuRU6A", 19094)}
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def test_apache_reads_what_was_formatted(tmp_path: Path) -> None:
    config, data = tmp_path / "server.properties", tmp_path / "data"
    config.write_text(
        "node.id=1\nprocess.roles=broker,controller\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:19093\nlog.dirs={data}\n"
    )
    voters = ",".join(f"{n}@127.0.0.1:{port}:{directory}" for n, (directory, port) in VOTERS.items())
    given = ("--config", str(config), "--cluster-id", CLUSTER_ID)
    assert odradek("cluster", "format", *given, "--initial-controllers", voters).code == 0

    info = peer.tool("storage", "info", "-c", str(config)).stdout
    assert f"cluster.id={CLUSTER_ID}, directory.id={VOTERS[1][0]}, node.id=1, version=1" in info
    assert "Found problem" not in info

    dumped = peer.tool("dump-log", "--cluster-metadata-decoder", "--files", str(data / SNAPSHOT)).stdout
    found = [json.loads(text) for text in re.findall(r"(?:KRaftVoters|KRaftVersion) (\{.*\})$", dumped, re.M)]
    version, listed = found
    assert version["kRaftVersion"] == 1
    assert {v["voterId"]: v["voterDirectoryId"] for v in listed["voters"]} == {
        n: directory for n, (directory, _) in VOTERS.items()
    }
    assert [v["endpoints"] for v in listed["voters"]] == [
        [{"name": "CONTROLLER", "host": "127.0.0.1", "port": port}] for _, port in VOTERS.values()
    ]
