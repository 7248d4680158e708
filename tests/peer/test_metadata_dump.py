"""Our metadata log and snapshots, read by Apache Kafka's own tools: dump-log and the metadata shell."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from odradek.core.types import uuid_to_text
from odradek.metadata.image import MetadataImage
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.support import peer
from tests.unit.metadata.stack import MetadataStack, until

pytestmark = pytest.mark.apache

METADATA_DIR = "__cluster_metadata-0"
_COMPLAINTS = re.compile(r"isvalid: false|exception|error|corrupt|mismatch", re.I)
_PAYLOAD = re.compile(r"payload: (\{.*\})$", re.M)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MetadataImage]:
    """A data directory after creations, changes, deletions, two lives and a snapshot; its last image."""
    path = tmp_path_factory.mktemp("data")
    image = asyncio.run(live(path))
    return path, image


async def live(path: Path) -> MetadataImage:
    runtime = RealRuntime()
    for settings in ({}, {"metadata.log.max.record.bytes.between.snapshots": "1"}):
        node = MetadataStack(runtime, str(path), settings)
        await node.start()
        if "orders" not in node.image.topics_by_name:
            await change(node)
        else:
            snapshots = node.controller.raft.snapshots
            await until(lambda s=snapshots: s.newest is not None and s.newest.end_offset > 0)
        await node.stop()
    runtime.close()
    return node.image


async def change(node: MetadataStack) -> None:
    await node.create_topic("orders", 3)
    await node.create_topic("gone", 1)
    call = node.controller.call
    configs = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    for kind, name, key, value in (
        (2, "orders", "retention.ms", "7200000"),
        (2, "orders", "min.insync.replicas", "1"),
        (4, "1", "log.cleaner.threads", "2"),
        (4, "", "message.max.bytes", "2000000"),
    ):
        resource = configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[configs.AlterableConfig(name=key, config_operation=0, value=value)],
        )
        request = configs.IncrementalAlterConfigsRequest(resources=[resource])
        await call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
    deletion = request_types(ApiKey.DELETE_TOPICS)
    state = deletion.DeleteTopicState(name="gone")
    await call(ApiKey.DELETE_TOPICS, deletion.DeleteTopicsRequest(topics=[state]))
    growth = request_types(ApiKey.CREATE_PARTITIONS)
    topic = growth.CreatePartitionsTopic(name="orders", count=4, assignments=None)
    await call(ApiKey.CREATE_PARTITIONS, growth.CreatePartitionsRequest(topics=[topic]))
    features = request_types(ApiKey.UPDATE_FEATURES)
    update = features.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    await call(ApiKey.UPDATE_FEATURES, features.UpdateFeaturesRequest(feature_updates=[update]))
    await node.producer_ids.ready()
    node.producer_ids.take()


def dump(path: Path) -> str:
    out = peer.tool("dump-log", "--cluster-metadata-decoder", "--files", path)
    assert out.returncode == 0, out.stderr
    assert not _COMPLAINTS.search(out.stdout + out.stderr), out.stdout + out.stderr
    return out.stdout


def payloads(text: str) -> list[dict[str, Any]]:
    return [json.loads(found) for found in _PAYLOAD.findall(text)]


def test_apache_reads_every_record_of_our_log(written: tuple[Path, MetadataImage]) -> None:
    path, image = written
    text = dump(path / METADATA_DIR / "00000000000000000000.log")
    assert "LeaderChange" in text
    assert "KRaftVersion" in text
    assert "KRaftVoters" in text
    records = [r for r in payloads(text) if r["type"] != "NO_OP_RECORD"]
    kinds = [r["type"] for r in records]
    assert kinds[:7] == [
        "BEGIN_TRANSACTION_RECORD",
        *["FEATURE_LEVEL_RECORD"] * 4,
        "CONFIG_RECORD",
        "END_TRANSACTION_RECORD",
    ]
    for kind in (
        "REGISTER_CONTROLLER_RECORD",
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "PARTITION_CHANGE_RECORD",
        "REMOVE_TOPIC_RECORD",
        "CLEAR_ELR_RECORD",
        "PRODUCER_IDS_RECORD",
    ):
        assert kind in kinds, kind
    created = [r["data"] for r in records if r["type"] == "TOPIC_RECORD"]
    assert [t["name"] for t in created] == ["orders", "gone"]
    assert created[0]["topicId"] == uuid_to_text(image.topics_by_name["orders"].id)


def test_apache_reads_our_snapshot(written: tuple[Path, MetadataImage]) -> None:
    path, image = written
    newest = sorted((path / METADATA_DIR).glob("*.checkpoint"))[-1]
    text = dump(newest)
    assert "SnapshotHeader" in text
    assert "SnapshotFooter" in text
    records = payloads(text)
    features = {r["data"]["name"]: r["data"]["featureLevel"] for r in records if "FEATURE" in r["type"]}
    assert features == dict(image.features)
    partitions = [r["data"] for r in records if r["type"] == "PARTITION_RECORD"]
    assert [p["partitionId"] for p in partitions] == [0, 1, 2, 3]
    configs = {
        (r["data"]["resourceType"], r["data"]["resourceName"], r["data"]["name"]): r["data"]["value"]
        for r in records
        if r["type"] == "CONFIG_RECORD"
    }
    assert configs == {
        (2, "orders", "retention.ms"): "7200000",
        (2, "orders", "min.insync.replicas"): "1",
        (4, "1", "log.cleaner.threads"): "2",
        (4, "", "message.max.bytes"): "2000000",
        (4, "", "min.insync.replicas"): "1",
    }


def test_apaches_metadata_shell_walks_our_snapshot(written: tuple[Path, MetadataImage]) -> None:
    path, image = written
    newest = sorted((path / METADATA_DIR).glob("*.checkpoint"))[-1]
    found = peer.shell_shows("/image/topics/byName/orders/0", newest, "find", "/image")
    assert "/image/features/metadataVersion" in found
    topic_id = uuid_to_text(image.topics_by_name["orders"].id)
    peer.shell_shows(topic_id, newest, "cat", "/image/topics/byName/orders/id")


def test_apache_reads_our_bootstrap_checkpoint(written: tuple[Path, MetadataImage]) -> None:
    path, _ = written
    copy = path / "00000000000000000000-0000000000.checkpoint"
    copy.write_bytes((path / "bootstrap.checkpoint").read_bytes())
    levels = {r["data"]["name"]: r["data"]["featureLevel"] for r in payloads(dump(copy))}
    assert levels == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
