"""What a broker looks for in its own image after a controller on another node has answered."""

from typing import Any
from uuid import UUID

import pytest

from odradek.core.errors import ErrorCode
from odradek.metadata.image import EMPTY_IMAGE, BrokerRegistration, MetadataImage, TopicImage
from odradek.metadata.shown import shown
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types, response_types

T, U = UUID(int=5000), UUID(int=5001)


def image(
    *topics: tuple[str, UUID, int],
    configs: dict[tuple[int, str], dict[str, str]] | None = None,
    features: dict[str, int] | None = None,
    broker_epoch: int | None = None,
) -> MetadataImage:
    made: Any = object()
    images = [TopicImage(name, id_, dict.fromkeys(range(count), made)) for name, id_, count in topics]
    brokers = {}
    if broker_epoch is not None:
        brokers[1] = BrokerRegistration(
            1, broker_epoch, UUID(int=1), {}, None, False, False, (), None, features={}
        )
    return EMPTY_IMAGE._replace(
        topics_by_name={t.name: t for t in images},
        topics_by_id={t.id: t for t in images},
        configs=configs or {},
        features=features or {},
        brokers=brokers,
    )


def is_shown(api_key: ApiKey, request: Any, response: Any, found: MetadataImage) -> bool:
    condition = shown(api_key, request, response)
    assert condition is not None
    return condition(found)


def create(*rows: tuple[str, UUID, int]) -> tuple[Any, Any]:
    asked, types = request_types(ApiKey.CREATE_TOPICS), response_types(ApiKey.CREATE_TOPICS)
    request = asked.CreateTopicsRequest(
        topics=[asked.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name, *_ in rows]
    )
    return request, types.CreateTopicsResponse(
        topics=[
            types.CreatableTopicResult(name=name, topic_id=topic_id, error_code=code)
            for name, topic_id, code in rows
        ]
    )


def test_created_topics_are_there_by_their_ids() -> None:
    request, response = create(("t", T, 0), ("refused", UUID(int=0), ErrorCode.INVALID_PARTITIONS))
    assert not is_shown(ApiKey.CREATE_TOPICS, request, response, EMPTY_IMAGE)
    earlier = image(("t", U, 1))
    assert not is_shown(ApiKey.CREATE_TOPICS, request, response, earlier), "an earlier topic of the name"
    assert is_shown(ApiKey.CREATE_TOPICS, request, response, image(("t", T, 1)))


def test_a_topic_that_another_node_created_a_moment_ago_is_waited_for_by_its_name() -> None:
    request, response = create(("t", UUID(int=0), ErrorCode.TOPIC_ALREADY_EXISTS))
    assert not is_shown(ApiKey.CREATE_TOPICS, request, response, EMPTY_IMAGE)
    assert is_shown(ApiKey.CREATE_TOPICS, request, response, image(("t", T, 1)))


def test_what_was_only_validated_is_not_waited_for() -> None:
    request, response = create(("t", T, 0))
    request.validate_only = True
    assert shown(ApiKey.CREATE_TOPICS, request, response) is None


def test_deleted_topics_are_gone() -> None:
    types = response_types(ApiKey.DELETE_TOPICS)
    response = types.DeleteTopicsResponse(
        responses=[
            types.DeletableTopicResult(name="t", topic_id=T, error_code=0),
            types.DeletableTopicResult(
                name="other", topic_id=U, error_code=ErrorCode.TOPIC_DELETION_DISABLED
            ),
        ]
    )
    request = request_types(ApiKey.DELETE_TOPICS).DeleteTopicsRequest()
    assert not is_shown(ApiKey.DELETE_TOPICS, request, response, image(("t", T, 1), ("other", U, 1)))
    assert is_shown(ApiKey.DELETE_TOPICS, request, response, image(("other", U, 1)))
    again = image(("t", UUID(int=7), 1))
    assert is_shown(ApiKey.DELETE_TOPICS, request, response, again), "created again since"


def test_partitions_are_as_many_as_asked_for() -> None:
    asked, types = request_types(ApiKey.CREATE_PARTITIONS), response_types(ApiKey.CREATE_PARTITIONS)
    request = asked.CreatePartitionsRequest(
        topics=[asked.CreatePartitionsTopic(name=name, count=4) for name in ("t", "refused")]
    )
    response = types.CreatePartitionsResponse(
        results=[
            types.CreatePartitionsTopicResult(name="t", error_code=0),
            types.CreatePartitionsTopicResult(name="refused", error_code=ErrorCode.INVALID_PARTITIONS),
        ]
    )
    few = image(("t", T, 3), ("refused", U, 1))
    assert not is_shown(ApiKey.CREATE_PARTITIONS, request, response, few)
    assert is_shown(ApiKey.CREATE_PARTITIONS, request, response, image(("t", T, 4), ("refused", U, 1)))
    assert is_shown(ApiKey.CREATE_PARTITIONS, request, response, EMPTY_IMAGE), "deleted since"


@pytest.mark.parametrize(
    ("operation", "value", "before", "after"),
    [(0, "1", {}, {"a": "1"}), (1, None, {"a": "1"}, {})],
    ids=["set", "deleted"],
)
def test_changed_configs_have_their_values(
    operation: int, value: str | None, before: dict[str, str], after: dict[str, str]
) -> None:
    api_key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    asked, types = request_types(api_key), response_types(api_key)
    config = asked.AlterableConfig(name="a", config_operation=operation, value=value)
    appended = asked.AlterableConfig(name="b", config_operation=2, value="x")
    request = asked.IncrementalAlterConfigsRequest(
        resources=[
            asked.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config, appended]),
            asked.AlterConfigsResource(resource_type=2, resource_name="refused", configs=[config]),
        ]
    )
    response = types.IncrementalAlterConfigsResponse(
        responses=[
            types.AlterConfigsResourceResponse(resource_type=2, resource_name="t", error_code=0),
            types.AlterConfigsResourceResponse(
                resource_type=2, resource_name="refused", error_code=ErrorCode.INVALID_CONFIG
            ),
        ]
    )
    assert not is_shown(api_key, request, response, image(configs={(2, "t"): before}))
    assert is_shown(api_key, request, response, image(configs={(2, "t"): after}))


def test_replaced_configs_are_all_there_are() -> None:
    asked, types = request_types(ApiKey.ALTER_CONFIGS), response_types(ApiKey.ALTER_CONFIGS)
    configs = [asked.AlterableConfig(name="a", value="1")]
    request = asked.AlterConfigsRequest(
        resources=[asked.AlterConfigsResource(resource_type=2, resource_name="t", configs=configs)]
    )
    response = types.AlterConfigsResponse(
        responses=[types.AlterConfigsResourceResponse(resource_type=2, resource_name="t", error_code=0)]
    )
    before = image(configs={(2, "t"): {"a": "1", "b": "2"}})
    assert not is_shown(ApiKey.ALTER_CONFIGS, request, response, before)
    assert is_shown(ApiKey.ALTER_CONFIGS, request, response, image(configs={(2, "t"): {"a": "1"}}))


def test_features_are_at_their_levels_and_those_at_zero_are_gone() -> None:
    asked, types = request_types(ApiKey.UPDATE_FEATURES), response_types(ApiKey.UPDATE_FEATURES)
    request = asked.UpdateFeaturesRequest(
        feature_updates=[
            asked.FeatureUpdateKey(feature="a", max_version_level=2),
            asked.FeatureUpdateKey(feature="b", max_version_level=0),
        ]
    )
    response = types.UpdateFeaturesResponse(error_code=0, results=[])
    assert not is_shown(ApiKey.UPDATE_FEATURES, request, response, image(features={"a": 2, "b": 1}))
    assert is_shown(ApiKey.UPDATE_FEATURES, request, response, image(features={"a": 2}))
    response.error_code = ErrorCode.FEATURE_UPDATE_FAILED
    assert shown(ApiKey.UPDATE_FEATURES, request, response) is None


def test_a_broker_is_registered_at_its_epoch_or_a_later_one() -> None:
    asked, types = request_types(ApiKey.BROKER_REGISTRATION), response_types(ApiKey.BROKER_REGISTRATION)
    request = asked.BrokerRegistrationRequest(broker_id=1)
    response = types.BrokerRegistrationResponse(error_code=0, broker_epoch=9)
    assert not is_shown(ApiKey.BROKER_REGISTRATION, request, response, EMPTY_IMAGE)
    assert not is_shown(ApiKey.BROKER_REGISTRATION, request, response, image(broker_epoch=8))
    assert is_shown(ApiKey.BROKER_REGISTRATION, request, response, image(broker_epoch=9))
    response.error_code = ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert shown(ApiKey.BROKER_REGISTRATION, request, response) is None


def test_an_unregistered_broker_is_gone() -> None:
    asked, types = request_types(ApiKey.UNREGISTER_BROKER), response_types(ApiKey.UNREGISTER_BROKER)
    request = asked.UnregisterBrokerRequest(broker_id=1)
    response = types.UnregisterBrokerResponse(error_code=0)
    assert not is_shown(ApiKey.UNREGISTER_BROKER, request, response, image(broker_epoch=8))
    assert is_shown(ApiKey.UNREGISTER_BROKER, request, response, EMPTY_IMAGE)


def test_heartbeats_are_not_waited_for() -> None:
    assert shown(ApiKey.BROKER_HEARTBEAT, None, None) is None
