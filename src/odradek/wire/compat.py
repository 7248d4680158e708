"""Converts fields that were renamed or regrouped between versions, to the form of the newest version and
back.

Each rule fills the fields of one form from the fields of the other, in place: a message has both. A rule that
goes through the entries of a message is paced work (runtime/slices.py), because there may be many. Fields
that are the same in all versions need no rule. Topic names are not converted to topic ids here.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from odradek.runtime.slices import FEW, Paced
from odradek.wire.api_keys import ApiKey

Convert = Callable[..., None]
Steps = Callable[..., Paced[None]]


class Rule(NamedTuple):
    """Applies up to `last_version`, the last one with the old form. Called with (message, types, version)."""

    last_version: int
    convert: Steps


REQUEST_UPGRADES: dict[int, Rule] = {}
REQUEST_DOWNGRADES: dict[int, Rule] = {}
RESPONSE_UPGRADES: dict[int, Rule] = {}
RESPONSE_DOWNGRADES: dict[int, Rule] = {}


def _rule(table: dict[int, Rule], api_key: ApiKey, last_version: int) -> Callable[[Convert], Convert]:
    """Register a rule whose cost does not depend on the message."""

    def register(convert: Convert) -> Convert:
        def steps(message: Any, types: Any, version: int) -> Paced[None]:
            convert(message, types, version)
            yield FEW

        table[api_key] = Rule(last_version, steps)
        return convert

    return register


def _paced_rule(table: dict[int, Rule], api_key: ApiKey, last_version: int) -> Callable[[Steps], Steps]:
    """Register a rule whose cost grows with the message."""

    def register(convert: Steps) -> Steps:
        table[api_key] = Rule(last_version, convert)
        return convert

    return register


# Fetch: the replica's id moved into replica_state in v15.


@_rule(REQUEST_UPGRADES, ApiKey.FETCH, 14)
def _fetch_up(message: Any, types: Any, version: int) -> None:
    message.replica_state = types.ReplicaState(replica_id=message.replica_id)


@_rule(REQUEST_DOWNGRADES, ApiKey.FETCH, 14)
def _fetch_down(message: Any, types: Any, version: int) -> None:
    message.replica_id = message.replica_state.replica_id


# Metadata: v0 asks for all topics with an empty list, later versions with null.


@_rule(REQUEST_UPGRADES, ApiKey.METADATA, 0)
def _metadata_up(message: Any, types: Any, version: int) -> None:
    message.topics = message.topics or None


@_rule(REQUEST_DOWNGRADES, ApiKey.METADATA, 0)
def _metadata_down(message: Any, types: Any, version: int) -> None:
    message.topics = message.topics or ()


# JoinGroup: v0 has one timeout for both purposes.


@_rule(REQUEST_UPGRADES, ApiKey.JOIN_GROUP, 0)
def _join_group_up(message: Any, types: Any, version: int) -> None:
    message.rebalance_timeout = message.session_timeout


# OffsetFetch: one group up to v7, a list of groups since.


@_paced_rule(REQUEST_UPGRADES, ApiKey.OFFSET_FETCH, 7)
def _offset_fetch_up(message: Any, types: Any, version: int) -> Paced[None]:
    topics: list[Any] | None = None if message.topics is None else []
    for t in message.topics or ():
        assert topics is not None
        topics.append(types.OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes))
        yield FEW
    message.groups = [types.OffsetFetchRequestGroup(group_id=message.group_id, topics=topics)]


@_rule(REQUEST_DOWNGRADES, ApiKey.OFFSET_FETCH, 7)
def _offset_fetch_down(message: Any, types: Any, version: int) -> None:
    (group,) = message.groups
    message.group_id, message.topics = group.group_id, group.topics


@_rule(RESPONSE_UPGRADES, ApiKey.OFFSET_FETCH, 7)
def _offset_fetched_up(message: Any, types: Any, version: int) -> None:
    topics = [
        types.OffsetFetchResponseTopics(
            name=topic.name,
            partitions=[
                types.OffsetFetchResponsePartitions(
                    partition_index=p.partition_index,
                    committed_offset=p.committed_offset,
                    committed_leader_epoch=p.committed_leader_epoch,
                    metadata=p.metadata,
                    error_code=p.error_code,
                )
                for p in topic.partitions
            ],
        )
        for topic in message.topics
    ]
    # The response of these versions does not name its group: the client knows it.
    message.groups = [types.OffsetFetchResponseGroup(topics=topics, error_code=message.error_code)]


@_paced_rule(RESPONSE_DOWNGRADES, ApiKey.OFFSET_FETCH, 7)
def _offset_fetched_down(message: Any, types: Any, version: int) -> Paced[None]:
    (group,) = message.groups
    message.topics, message.error_code = group.topics, group.error_code
    if version < 2 and group.error_code:
        # v1 has no top-level error: every requested partition gets it.
        for topic in group.topics:
            for partition in topic.partitions:
                partition.error_code = group.error_code
                yield FEW


# FindCoordinator: one key up to v3, a list of keys since.


@_rule(REQUEST_UPGRADES, ApiKey.FIND_COORDINATOR, 3)
def _find_coordinator_up(message: Any, types: Any, version: int) -> None:
    message.coordinator_keys = [message.key]


@_rule(REQUEST_DOWNGRADES, ApiKey.FIND_COORDINATOR, 3)
def _find_coordinator_down(message: Any, types: Any, version: int) -> None:
    (message.key,) = message.coordinator_keys


@_rule(RESPONSE_UPGRADES, ApiKey.FIND_COORDINATOR, 3)
def _found_coordinator_up(message: Any, types: Any, version: int) -> None:
    coordinator = types.Coordinator(
        node_id=message.node_id,
        host=message.host,
        port=message.port,
        error_code=message.error_code,
        error_message=message.error_message,
    )
    message.coordinators = [coordinator]


@_rule(RESPONSE_DOWNGRADES, ApiKey.FIND_COORDINATOR, 3)
def _found_coordinator_down(message: Any, types: Any, version: int) -> None:
    (found,) = message.coordinators
    message.node_id, message.host, message.port = found.node_id, found.host, found.port
    message.error_code, message.error_message = found.error_code, found.error_message


# LeaveGroup: one member up to v2, a list of members since.


@_rule(REQUEST_UPGRADES, ApiKey.LEAVE_GROUP, 2)
def _leave_group_up(message: Any, types: Any, version: int) -> None:
    message.members = [types.MemberIdentity(member_id=message.member_id)]


@_rule(REQUEST_DOWNGRADES, ApiKey.LEAVE_GROUP, 2)
def _leave_group_down(message: Any, types: Any, version: int) -> None:
    (member,) = message.members
    message.member_id = member.member_id


@_rule(RESPONSE_DOWNGRADES, ApiKey.LEAVE_GROUP, 2)
def _left_group_down(message: Any, types: Any, version: int) -> None:
    if not message.error_code and message.members:
        message.error_code = message.members[0].error_code


# DeleteTopics: names up to v5, names or ids since.


@_paced_rule(REQUEST_UPGRADES, ApiKey.DELETE_TOPICS, 5)
def _delete_topics_up(message: Any, types: Any, version: int) -> Paced[None]:
    message.topics = []
    for name in message.topic_names:
        message.topics.append(types.DeleteTopicState(name=name))
        yield FEW


@_rule(REQUEST_DOWNGRADES, ApiKey.DELETE_TOPICS, 5)
def _delete_topics_down(message: Any, types: Any, version: int) -> None:
    message.topic_names = [topic.name for topic in message.topics]


# AddPartitionsToTxn: one transaction up to v3, a list since.


@_rule(REQUEST_UPGRADES, ApiKey.ADD_PARTITIONS_TO_TXN, 3)
def _add_partitions_up(message: Any, types: Any, version: int) -> None:
    transaction = types.AddPartitionsToTxnTransaction(
        transactional_id=message.v3_and_below_transactional_id,
        producer_id=message.v3_and_below_producer_id,
        producer_epoch=message.v3_and_below_producer_epoch,
        topics=message.v3_and_below_topics,
    )
    message.transactions = [transaction]


@_rule(REQUEST_DOWNGRADES, ApiKey.ADD_PARTITIONS_TO_TXN, 3)
def _add_partitions_down(message: Any, types: Any, version: int) -> None:
    (transaction,) = message.transactions
    message.v3_and_below_transactional_id = transaction.transactional_id
    message.v3_and_below_producer_id = transaction.producer_id
    message.v3_and_below_producer_epoch = transaction.producer_epoch
    message.v3_and_below_topics = transaction.topics


@_rule(RESPONSE_UPGRADES, ApiKey.ADD_PARTITIONS_TO_TXN, 3)
def _added_partitions_up(message: Any, types: Any, version: int) -> None:
    results = types.AddPartitionsToTxnResult(topic_results=message.results_by_topic_v3_and_below)
    message.results_by_transaction = [results]


@_rule(RESPONSE_DOWNGRADES, ApiKey.ADD_PARTITIONS_TO_TXN, 3)
def _added_partitions_down(message: Any, types: Any, version: int) -> None:
    (result,) = message.results_by_transaction
    message.results_by_topic_v3_and_below = result.topic_results


# AlterPartition: plain ids up to v2, ids with broker epochs since.


@_rule(REQUEST_UPGRADES, ApiKey.ALTER_PARTITION, 2)
def _alter_partition_up(message: Any, types: Any, version: int) -> None:
    for topic in message.topics:
        for partition in topic.partitions:
            partition.new_isr_with_epochs = [types.BrokerState(broker_id=id_) for id_ in partition.new_isr]


@_rule(REQUEST_DOWNGRADES, ApiKey.ALTER_PARTITION, 2)
def _alter_partition_down(message: Any, types: Any, version: int) -> None:
    for topic in message.topics:
        for partition in topic.partitions:
            partition.new_isr = [member.broker_id for member in partition.new_isr_with_epochs]


# UpdateFeatures: v0 can only allow a downgrade; later versions distinguish safe (2) and unsafe (3) ones.

_UPGRADE, _SAFE_DOWNGRADE = 1, 2


@_paced_rule(REQUEST_UPGRADES, ApiKey.UPDATE_FEATURES, 0)
def _update_features_up(message: Any, types: Any, version: int) -> Paced[None]:
    for update in message.feature_updates:
        update.upgrade_type = _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
        yield FEW


@_rule(REQUEST_DOWNGRADES, ApiKey.UPDATE_FEATURES, 0)
def _update_features_down(message: Any, types: Any, version: int) -> None:
    for update in message.feature_updates:
        update.allow_downgrade = update.upgrade_type != _UPGRADE


# EndQuorumEpoch: v0 lists successors by id, v1 by id and directory.


@_rule(REQUEST_UPGRADES, ApiKey.END_QUORUM_EPOCH, 0)
def _end_quorum_epoch_up(message: Any, types: Any, version: int) -> None:
    for topic in message.topics:
        for partition in topic.partitions:
            partition.preferred_candidates = [
                types.ReplicaInfo(candidate_id=id_) for id_ in partition.preferred_successors
            ]


@_rule(REQUEST_DOWNGRADES, ApiKey.END_QUORUM_EPOCH, 0)
def _end_quorum_epoch_down(message: Any, types: Any, version: int) -> None:
    for topic in message.topics:
        for partition in topic.partitions:
            partition.preferred_successors = [c.candidate_id for c in partition.preferred_candidates]


# ListConfigResources: v0, under its older name, listed the client metrics resources only.

_CLIENT_METRICS = 16


@_rule(REQUEST_UPGRADES, ApiKey.LIST_CONFIG_RESOURCES, 0)
def _list_config_resources_up(message: Any, types: Any, version: int) -> None:
    message.resource_types = [_CLIENT_METRICS]
