"""Large commits of the metadata log: other clients are served while they are applied, and the node can
stop."""

import logging
from pathlib import Path
from typing import Any

import pytest

from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request, parse_response_header
from odradek.wire.messages import request_types, response_decoder
from tests.hostile.names import RECORDS
from tests.hostile.stage import Client, Stage, staged
from tests.support.produce import produce_values
from tests.support.raw import request_bytes

MANY = 60


def creation(name: str, partitions: int) -> bytes:
    types = request_types(ApiKey.CREATE_TOPICS)
    topic = types.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    request = types.CreateTopicsRequest(topics=[topic], timeout=30_000, validate_only=False)
    return encode_request(ApiKey.CREATE_TOPICS, 7, 1, "test", request)


def deletion(name: str) -> bytes:
    types = request_types(ApiKey.DELETE_TOPICS)
    request = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(name=name)], timeout=30_000)
    return encode_request(ApiKey.DELETE_TOPICS, 6, 1, "test", request)


def answer_of(api_key: ApiKey, version: int, frame: bytes | None) -> Any:
    assert frame is not None
    _, position = parse_response_header(frame, 0, api_key, version)
    return response_decoder(api_key, version)(frame, position)[0]


def create(stage: Stage, client: Client, name: str, partitions: int) -> None:
    (topic,) = answer_of(ApiKey.CREATE_TOPICS, 7, stage.ask(client, creation(name, partitions))).topics
    assert topic.error_code == 0


def opened(stage: Stage, name: str) -> int:
    """How many partitions of a topic the node has."""
    return sum(tp.topic == name for tp in stage.node.replicas.partitions)


def is_known(stage: Stage, name: str) -> bool:
    return name in stage.node.metadata.image.topics_by_name


def test_a_produce_goes_on_while_the_partitions_of_another_topic_are_created(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as other:
        create(stage, client, "other", 1)
        client.send(creation("broad", MANY))
        stage.until(lambda: is_known(stage, "broad"))
        produced = stage.ask(other, request_bytes(ApiKey.PRODUCE, 9, produce_values("other", RECORDS)))
        (topic,) = answer_of(ApiKey.PRODUCE, 9, produced).responses
        assert topic.partition_responses[0].error_code == 0
        assert opened(stage, "broad") < MANY and client.answer() is None
        answers: list[bytes] = []
        stage.until(lambda: bool(answers.extend(filter(None, [client.answer()])) or answers))
        assert opened(stage, "broad") == MANY, "whoever created them finds them"


def test_deltas_are_applied_in_order(tmp_path: Path) -> None:
    """A topic that is deleted and created again has the logs of the new one."""
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as other:
        create(stage, client, "broad", MANY)
        old_id = stage.node.metadata.image.topics_by_name["broad"].id
        client.send(deletion("broad"))
        stage.until(lambda: not is_known(stage, "broad"))
        assert opened(stage, "broad") > 0
        create(stage, other, "broad", MANY)
        new_id = stage.node.metadata.image.topics_by_name["broad"].id
        assert new_id != old_id and opened(stage, "broad") == MANY
        for index in range(MANY):
            assert stage.node.replicas.partitions[TopicPartition("broad", index)].topic_id == new_id


def test_a_stop_in_the_middle_creates_no_more_logs_and_the_next_start_does(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage:
        stage.connect().send(creation("broad", MANY))
        stage.until(lambda: opened(stage, "broad") > 2)
        node = stage.node
    begun = sum(tp.topic == "broad" for tp in node.replicas.partitions)
    assert 2 < begun < MANY
    with staged(tmp_path / "data") as stage, stage.client() as client:
        assert opened(stage, "broad") == MANY
        produced = stage.ask(client, request_bytes(ApiKey.PRODUCE, 9, produce_values("broad", RECORDS)))
        (topic,) = answer_of(ApiKey.PRODUCE, 9, produced).responses
        assert topic.partition_responses[0].error_code == 0
    assert not list((tmp_path / "data").glob("*-stray"))


def test_a_stop_in_the_middle_finishes_a_deletion(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage:
        client = stage.connect()
        create(stage, client, "broad", MANY)
        client.send(deletion("broad"))
        stage.until(lambda: opened(stage, "broad") < MANY - 2)
        assert opened(stage, "broad") > 0
    with staged(tmp_path / "data") as stage:
        assert opened(stage, "broad") == 0
    assert not list((tmp_path / "data").glob("*-stray"))


def test_a_partition_that_fails_is_reported_and_keeps_no_other_from_its_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client:
        logs = stage.node.logs
        get_or_create = logs.get_or_create

        def failing(tp: TopicPartition, *args: Any, **kwargs: Any) -> Any:
            if tp.partition == 1:
                raise ValueError("no good")
            return get_or_create(tp, *args, **kwargs)

        monkeypatch.setattr(logs, "get_or_create", failing)
        with caplog.at_level(logging.ERROR):
            create(stage, client, "t", 4)
        assert [tp.partition for tp in stage.node.replicas.partitions] == [0, 2, 3]
        assert [r.getMessage() for r in caplog.records] == ["Error applying the metadata of t-1"]
        monkeypatch.undo()
        create(stage, client, "next", 2)
        assert opened(stage, "next") == 2


def test_a_checkpoint_is_gathered_in_slices_and_news_meanwhile_are_written_too(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client:
        create(stage, client, "broad", MANY)
        stage.wait_until_idle()
        logs, checkpoint = stage.node.logs, tmp_path / "data" / "replication-offset-checkpoint"
        stage.node.slices.resize(20)
        stage.loop.call_soon(logs.checkpoint_high_watermarks)
        stage.turn()
        produced = stage.ask(client, request_bytes(ApiKey.PRODUCE, 9, produce_values("broad", RECORDS)))
        assert answer_of(ApiKey.PRODUCE, 9, produced).responses[0].partition_responses[0].error_code == 0
        stage.loop.call_soon(logs.checkpoint_high_watermarks)
        stage.wait_until_idle()
        lines = checkpoint.read_text().splitlines()
        end = logs.logs[TopicPartition("broad", 0)].high_watermark
        assert end > 0 and f"broad 0 {end}" in lines
