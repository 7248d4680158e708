"""Topics that are created on first use, by a controller that may fail."""

import asyncio
from typing import Any

import pytest

from odradek.broker.topics import TopicCreation
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.broker.handlers.admin_node import AdminNode


def creation_of(node: Any) -> TopicCreation:
    return TopicCreation(node.config, node.metadata, node.controller)


class CreatingNode(AdminNode):
    def __init__(self) -> None:
        super().__init__({"auto.create.topics.enable": "true"})
        self.internal_topics = creation_of(self)


def test_a_controller_that_fails_leaves_the_rest_of_the_metadata_as_it_is() -> None:
    node = CreatingNode()
    node.create("known")
    node.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log failed")
    types = request_types(ApiKey.METADATA)
    for version in (9, 13):
        request = types.MetadataRequest(
            topics=[types.MetadataRequestTopic(name=name) for name in ("known", "fresh")],
            allow_auto_topic_creation=True,
        )
        answer = node.ask(ApiKey.METADATA, request, version)
        assert [broker.node_id for broker in answer.brokers] == [1]
        assert {topic.name: topic.error_code for topic in answer.topics} == {
            "known": ErrorCode.NONE,
            "fresh": ErrorCode.KAFKA_STORAGE_ERROR,
        }


def test_all_who_wait_for_the_same_topic_learn_why_it_failed() -> None:
    node: Any = CreatingNode()
    node.failure = KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    async def scenario() -> None:
        creation = creation_of(node)
        outcomes = await asyncio.gather(creation.auto_create(["t"]), creation.auto_create(["t"]))
        assert outcomes == [{"t": ErrorCode.REQUEST_TIMED_OUT}] * 2
        with pytest.raises(KafkaError) as e:
            await creation.ensure("t")
        assert e.value.code is ErrorCode.REQUEST_TIMED_OUT

    asyncio.run(scenario())
