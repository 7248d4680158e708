"""Old versions appear in the newest shape, and the newest shape is written in old versions."""

from typing import Any

import pytest

from odradek.wire import compat
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import (
    request_codec,
    request_decoder,
    request_encoder,
    request_types,
    response_decoder,
    response_encoder,
    response_types,
    versions,
)


def through_request(api_key: ApiKey, version: int, message: Any) -> Any:
    return request_decoder(api_key, version)(request_encoder(api_key, version)(message), 0)[0]


def through_response(api_key: ApiKey, version: int, message: Any) -> Any:
    return response_decoder(api_key, version)(response_encoder(api_key, version)(message), 0)[0]


def each_version(api_key: ApiKey) -> range:
    first, last = versions(api_key)
    return range(first, last + 1)


def test_fetch_always_has_replica_state() -> None:
    types = request_types(ApiKey.FETCH)
    for version in each_version(ApiKey.FETCH):
        sent = types.FetchRequest(replica_state=types.ReplicaState(replica_id=7), max_wait=500)
        assert through_request(ApiKey.FETCH, version, sent).replica_state.replica_id == 7


def test_metadata_of_all_topics_is_always_null() -> None:
    types = request_types(ApiKey.METADATA)
    for version in each_version(ApiKey.METADATA):
        assert through_request(ApiKey.METADATA, version, types.MetadataRequest(topics=None)).topics is None
    assert through_request(ApiKey.METADATA, 1, types.MetadataRequest(topics=[])).topics == []


def test_join_group_v0_rebalances_within_the_session_timeout() -> None:
    types = request_types(ApiKey.JOIN_GROUP)
    sent = types.JoinGroupRequest(group_id="g", session_timeout=10_000, rebalance_timeout=60_000)
    assert through_request(ApiKey.JOIN_GROUP, 0, sent).rebalance_timeout == 10_000
    assert through_request(ApiKey.JOIN_GROUP, 1, sent).rebalance_timeout == 60_000


def test_offset_fetch_always_has_groups() -> None:
    asked, answered = request_types(ApiKey.OFFSET_FETCH), response_types(ApiKey.OFFSET_FETCH)
    for version in each_version(ApiKey.OFFSET_FETCH):
        topic = asked.OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])
        sent = asked.OffsetFetchRequest(groups=[asked.OffsetFetchRequestGroup(group_id="g", topics=[topic])])
        (group,) = through_request(ApiKey.OFFSET_FETCH, version, sent).groups
        assert group.group_id == "g"
        assert group.topics[0].partition_indexes == [0, 1]

        found = answered.OffsetFetchResponsePartitions(partition_index=1, committed_offset=42, metadata="m")
        replied = answered.OffsetFetchResponse(
            groups=[
                answered.OffsetFetchResponseGroup(
                    group_id="g", topics=[answered.OffsetFetchResponseTopics(name="t", partitions=[found])]
                )
            ]
        )
        (result,) = through_response(ApiKey.OFFSET_FETCH, version, replied).groups
        assert result.topics[0].partitions[0].committed_offset == 42


def test_offset_fetch_of_all_topics_is_null_from_version_2_on() -> None:
    types = request_types(ApiKey.OFFSET_FETCH)
    for version in range(2, 11):
        sent = types.OffsetFetchRequest(groups=[types.OffsetFetchRequestGroup(group_id="g", topics=None)])
        assert through_request(ApiKey.OFFSET_FETCH, version, sent).groups[0].topics is None


def test_offset_fetch_v1_carries_a_group_error_in_its_partitions() -> None:
    types = response_types(ApiKey.OFFSET_FETCH)
    for version in (1, 2):
        partition = types.OffsetFetchResponsePartitions(partition_index=0, committed_offset=-1, metadata="")
        topic = types.OffsetFetchResponseTopics(name="t", partitions=[partition])
        group = types.OffsetFetchResponseGroup(group_id="g", topics=[topic], error_code=16)
        back = through_response(ApiKey.OFFSET_FETCH, version, types.OffsetFetchResponse(groups=[group]))
        assert back.groups[0].error_code == (16 if version > 1 else 0)
        assert back.groups[0].topics[0].partitions[0].error_code == (16 if version == 1 else 0)


def test_find_coordinator_always_has_keys() -> None:
    asked, answered = request_types(ApiKey.FIND_COORDINATOR), response_types(ApiKey.FIND_COORDINATOR)
    for version in each_version(ApiKey.FIND_COORDINATOR):
        sent = asked.FindCoordinatorRequest(coordinator_keys=["g"])
        assert through_request(ApiKey.FIND_COORDINATOR, version, sent).coordinator_keys == ["g"]
        found = answered.Coordinator(key="g", node_id=3, host="h", port=9092, error_code=15)
        replied = answered.FindCoordinatorResponse(coordinators=[found])
        (back,) = through_response(ApiKey.FIND_COORDINATOR, version, replied).coordinators
        assert (back.node_id, back.host, back.port, back.error_code) == (3, "h", 9092, 15)


def test_leave_group_always_has_members() -> None:
    asked, answered = request_types(ApiKey.LEAVE_GROUP), response_types(ApiKey.LEAVE_GROUP)
    for version in each_version(ApiKey.LEAVE_GROUP):
        sent = asked.LeaveGroupRequest(group_id="g", members=[asked.MemberIdentity(member_id="m")])
        assert through_request(ApiKey.LEAVE_GROUP, version, sent).members[0].member_id == "m"
        replied = answered.LeaveGroupResponse(members=[answered.MemberResponse(member_id="m", error_code=25)])
        back = through_response(ApiKey.LEAVE_GROUP, version, replied)
        assert (back.error_code if version < 3 else back.members[0].error_code) == 25


def test_delete_topics_always_has_topics() -> None:
    types = request_types(ApiKey.DELETE_TOPICS)
    for version in each_version(ApiKey.DELETE_TOPICS):
        sent = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(name="t")])
        assert through_request(ApiKey.DELETE_TOPICS, version, sent).topics[0].name == "t"


def test_add_partitions_to_txn_always_has_transactions() -> None:
    api_key = ApiKey.ADD_PARTITIONS_TO_TXN
    asked, answered = request_types(api_key), response_types(api_key)
    for version in each_version(api_key):
        topic = asked.AddPartitionsToTxnTopic(name="t", partitions=[1, 2])
        transaction = asked.AddPartitionsToTxnTransaction(
            transactional_id="x", producer_id=5, producer_epoch=2, topics=[topic]
        )
        (back,) = through_request(
            api_key, version, asked.AddPartitionsToTxnRequest(transactions=[transaction])
        ).transactions
        assert (back.transactional_id, back.producer_id, back.producer_epoch) == ("x", 5, 2)
        assert back.topics[0].partitions == [1, 2]
        results = answered.AddPartitionsToTxnTopicResult(
            name="t",
            results_by_partition=[
                answered.AddPartitionsToTxnPartitionResult(partition_index=1, partition_error_code=51)
            ],
        )
        replied = answered.AddPartitionsToTxnResponse(
            results_by_transaction=[answered.AddPartitionsToTxnResult(topic_results=[results])]
        )
        (result,) = through_response(api_key, version, replied).results_by_transaction
        assert result.topic_results[0].results_by_partition[0].partition_error_code == 51


def test_alter_partition_always_has_epochs() -> None:
    types = request_types(ApiKey.ALTER_PARTITION)
    for version in each_version(ApiKey.ALTER_PARTITION):
        partition = types.PartitionData(
            new_isr_with_epochs=[
                types.BrokerState(broker_id=1, broker_epoch=9),
                types.BrokerState(broker_id=2),
            ]
        )
        sent = types.AlterPartitionRequest(topics=[types.TopicData(partitions=[partition])])
        isr = (
            through_request(ApiKey.ALTER_PARTITION, version, sent).topics[0].partitions[0].new_isr_with_epochs
        )
        assert [m.broker_id for m in isr] == [1, 2]
        assert isr[0].broker_epoch == (9 if version > 2 else -1)


@pytest.mark.parametrize(("allow", "upgrade_type"), [(False, 1), (True, 2)])
def test_update_features_v0_says_downgrade_by_a_flag(allow: bool, upgrade_type: int) -> None:
    types = request_types(ApiKey.UPDATE_FEATURES)
    raw = types.UpdateFeaturesRequest(
        feature_updates=[
            types.FeatureUpdateKey(feature="f", allow_downgrade=allow, upgrade_type=upgrade_type)
        ]
    )
    data = request_codec(ApiKey.UPDATE_FEATURES).encoder(0)(raw)
    decoded, _ = request_decoder(ApiKey.UPDATE_FEATURES, 0)(data, 0)
    assert decoded.feature_updates[0].upgrade_type == upgrade_type
    assert request_encoder(ApiKey.UPDATE_FEATURES, 0)(decoded) == data


def test_end_quorum_epoch_always_has_candidates() -> None:
    types = request_types(ApiKey.END_QUORUM_EPOCH)
    for version in each_version(ApiKey.END_QUORUM_EPOCH):
        partition = types.PartitionData(preferred_candidates=[types.ReplicaInfo(candidate_id=2)])
        sent = types.EndQuorumEpochRequest(topics=[types.TopicData(partitions=[partition])])
        back = through_request(ApiKey.END_QUORUM_EPOCH, version, sent)
        assert back.topics[0].partitions[0].preferred_candidates[0].candidate_id == 2


def test_list_config_resources_v0_means_client_metrics() -> None:
    types = request_types(ApiKey.LIST_CONFIG_RESOURCES)
    sent = types.ListConfigResourcesRequest(resource_types=[2])
    assert through_request(ApiKey.LIST_CONFIG_RESOURCES, 0, sent).resource_types == [16]
    assert through_request(ApiKey.LIST_CONFIG_RESOURCES, 1, sent).resource_types == [2]


def test_rules_end_where_the_new_shape_begins() -> None:
    for table in (compat.REQUEST_UPGRADES, compat.REQUEST_DOWNGRADES):
        for api_key, rule in table.items():
            first, last = versions(api_key)
            assert first <= rule.last_version < last
