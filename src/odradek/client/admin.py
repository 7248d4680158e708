"""Administration: topics, configs, offsets, groups, the cluster. Each call tries again while errors may pass.

Results are the response's own objects (wire/definitions); an error in them is raised as KafkaError.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odradek.client.client import Client, check
from odradek.client.watching import MovedError
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

_UNDER_WAY = ("Ongoing", "PrepareCommit", "PrepareAbort")
LAST_OFFSETS_BY_NAME = 9
"""OffsetCommit and OffsetFetch know topics by name up to here, by id after it."""


class Admin:
    """Questions and orders to a cluster, as one client."""

    __slots__ = ("_client",)

    def __init__(self, client: Client) -> None:
        self._client = client

    # Topics

    async def create_topics(
        self,
        topics: Mapping[str, int],
        *,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> list[Any]:
        """Topics with their numbers of partitions, -1 for the broker's default."""
        types = request_types(ApiKey.CREATE_TOPICS)
        settings = [types.CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()]
        request = types.CreateTopicsRequest(
            topics=[
                types.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replication_factor,
                    configs=settings,
                )
                for name, partitions in topics.items()
            ],
            timeout=self._client.request_timeout_ms,
            validate_only=validate_only,
        )
        return await self._checked(ApiKey.CREATE_TOPICS, request, lambda response: response.topics)

    async def delete_topics(self, names: Sequence[str]) -> list[Any]:
        types = request_types(ApiKey.DELETE_TOPICS)
        request = types.DeleteTopicsRequest(
            topics=[types.DeleteTopicState(name=name) for name in names],
            timeout=self._client.request_timeout_ms,
        )
        return await self._checked(ApiKey.DELETE_TOPICS, request, lambda response: response.responses)

    async def create_partitions(self, totals: Mapping[str, int]) -> list[Any]:
        """Grow topics to these numbers of partitions."""
        types = request_types(ApiKey.CREATE_PARTITIONS)
        request = types.CreatePartitionsRequest(
            topics=[
                types.CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in totals.items()
            ],
            timeout=self._client.request_timeout_ms,
        )
        return await self._checked(ApiKey.CREATE_PARTITIONS, request, lambda response: response.results)

    # Configs

    async def describe_configs(self, resource_type: int, name: str) -> list[Any]:
        types = request_types(ApiKey.DESCRIBE_CONFIGS)
        resource = types.DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=None
        )
        request = types.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        node_id = int(name) if resource_type == BROKER and name else None
        (result,) = await self._checked(
            ApiKey.DESCRIBE_CONFIGS, request, lambda response: response.results, node_id
        )
        configs: list[Any] = result.configs
        return configs

    async def alter_configs(
        self, resource_type: int, name: str, changes: Sequence[tuple[str, int, str | None]]
    ) -> None:
        """Changes as (key, SET | DELETE | APPEND | SUBTRACT, value)."""
        types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        resource = types.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=[
                types.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in changes
            ],
        )
        request = types.IncrementalAlterConfigsRequest(resources=[resource])
        node_id = int(name) if resource_type == BROKER and name else None
        await self._checked(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, request, lambda response: response.responses, node_id
        )

    # Offsets

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, Any]:
        """Offset, timestamp and leader epoch found for a time, LATEST, EARLIEST or MAX_TIMESTAMP."""
        types = request_types(ApiKey.LIST_OFFSETS)

        def asked(tp: TopicPartition) -> Any:
            # A broker that does not know yet that it leads again must not answer for the time before.
            epoch = self._client.cluster.leader_epoch(tp)
            return types.ListOffsetsPartition(
                partition_index=tp.partition, current_leader_epoch=epoch, timestamp=timestamps[tp]
            )

        def make_request(partitions: Sequence[TopicPartition]) -> Any:
            return types.ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=_topics(partitions, types.ListOffsetsTopic, asked),
                timeout=self._client.request_timeout_ms,
            )

        return await self._ask_leaders(list(timestamps), ApiKey.LIST_OFFSETS, make_request)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        """Delete what lies before an offset, -1 for all that is committed; gives the new start offsets."""
        types = request_types(ApiKey.DELETE_RECORDS)

        def asked(tp: TopicPartition) -> Any:
            return types.DeleteRecordsPartition(partition_index=tp.partition, offset=before[tp])

        def make_request(partitions: Sequence[TopicPartition]) -> Any:
            return types.DeleteRecordsRequest(
                topics=_topics(partitions, types.DeleteRecordsTopic, asked),
                timeout=self._client.request_timeout_ms,
            )

        return await self._ask_leaders(list(before), ApiKey.DELETE_RECORDS, make_request)

    # Groups

    async def list_groups(self) -> list[Any]:
        """The groups of all brokers, by name."""
        types = request_types(ApiKey.LIST_GROUPS)
        groups: list[Any] = []
        for node_id in sorted((await self._client.refresh()).brokers):
            response = await self._call(ApiKey.LIST_GROUPS, types.ListGroupsRequest(), node_id)
            groups += response.groups
        return sorted(groups, key=lambda group: str(group.group_id))

    async def describe_group(self, group: str) -> Any:
        types = request_types(ApiKey.DESCRIBE_GROUPS)
        request = types.DescribeGroupsRequest(groups=[group])
        response = await self.ask_coordinator(
            group, ApiKey.DESCRIBE_GROUPS, request, lambda response: response.groups[0].error_code
        )
        return response.groups[0]

    async def delete_group(self, group: str) -> None:
        types = request_types(ApiKey.DELETE_GROUPS)
        request = types.DeleteGroupsRequest(groups_names=[group])
        await self.ask_coordinator(
            group, ApiKey.DELETE_GROUPS, request, lambda response: response.results[0].error_code
        )

    async def committed(
        self, group: str, partitions: Sequence[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, Any]:
        """What a group has committed: for some partitions, or all; those without an offset are left out."""
        types = request_types(ApiKey.OFFSET_FETCH)
        topics = None
        if partitions is not None:
            topics = [
                types.OffsetFetchRequestTopics(name=topic, partition_indexes=[tp.partition for tp in group_])
                for topic, group_ in by_topic(partitions).items()
            ]
        request = types.OffsetFetchRequest(
            groups=[types.OffsetFetchRequestGroup(group_id=group, topics=topics)],
            require_stable=require_stable,
        )
        response = await self.ask_coordinator(
            group,
            ApiKey.OFFSET_FETCH,
            request,
            lambda response: next(
                (p.error_code for t in response.groups[0].topics for p in t.partitions if p.error_code),
                response.groups[0].error_code,
            ),
            max_version=LAST_OFFSETS_BY_NAME,
        )
        return {
            TopicPartition(topic.name, partition.partition_index): partition
            for topic in response.groups[0].topics
            for partition in topic.partitions
            if partition.committed_offset >= 0
        }

    async def commit(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        """Commit offsets, as a member or from outside an empty group."""
        types = request_types(ApiKey.OFFSET_COMMIT)
        request = types.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            group_instance_id=group_instance_id,
            topics=[
                types.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        types.OffsetCommitRequestPartition(
                            partition_index=tp.partition, committed_offset=offsets[tp], committed_metadata=""
                        )
                        for tp in group_
                    ],
                )
                for topic, group_ in by_topic(list(offsets)).items()
            ],
        )
        await self.ask_coordinator(
            group,
            ApiKey.OFFSET_COMMIT,
            request,
            lambda response: next(
                (p.error_code for t in response.topics for p in t.partitions if p.error_code), 0
            ),
            max_version=LAST_OFFSETS_BY_NAME,
        )

    # Transactions

    async def list_transactions(
        self, states: Sequence[str] = (), prefix: str | None = None
    ) -> dict[int, list[Any]]:
        """The transactional ids of all known brokers that are in one of these states and begin so."""
        types = request_types(ApiKey.LIST_TRANSACTIONS)
        pattern = None if prefix is None else f"{re.escape(prefix)}.*"
        request = types.ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=[], transactional_id_pattern=pattern
        )
        is_stale = not self._client.cluster.brokers

        async def attempt() -> dict[int, list[Any]]:
            nonlocal is_stale
            if is_stale:
                await self._client.refresh()
            is_stale = True  # a broker that does not answer may have left, and another one has its ids
            found: dict[int, list[Any]] = {}
            for node_id in sorted(self._client.cluster.brokers):
                listed = await self._client.send(ApiKey.LIST_TRANSACTIONS, request, node_id=node_id)
                check(listed.error_code)
                # A broker that does not know patterns yet tells of all.
                found[node_id] = [
                    state
                    for state in listed.transaction_states
                    if prefix is None or state.transactional_id.startswith(prefix)
                ]
            return found

        return await self._client.retrying(attempt)

    async def open_transactions(self) -> list[Any]:
        """What coordinators say of every transactional id that is not at rest, by name."""
        found: list[Any] = []
        await self._client.retrying(self._client.refresh)
        for node_id, listed in (await self.list_transactions(_UNDER_WAY)).items():
            ids = [transaction.transactional_id for transaction in listed]
            asked = request_types(ApiKey.DESCRIBE_TRANSACTIONS).DescribeTransactionsRequest(
                transactional_ids=ids
            )
            if ids:
                response = await self._client.send(ApiKey.DESCRIBE_TRANSACTIONS, asked, node_id=node_id)
                found += [state for state in response.transaction_states if not state.error_code]
        return sorted(found, key=lambda state: str(state.transactional_id))

    # Asking

    async def _call(self, api_key: ApiKey, request: Any, node_id: int | None = None) -> Any:
        async def attempt() -> Any:
            response = await self._client.send(api_key, request, node_id=node_id)
            check(response.error_code, getattr(response, "error_message", None))
            return response

        return await self._client.retrying(attempt)

    async def _checked(
        self, api_key: ApiKey, request: Any, results: Callable[[Any], list[Any]], node_id: int | None = None
    ) -> list[Any]:
        async def attempt() -> list[Any]:
            found = results(await self._client.send(api_key, request, node_id=node_id))
            for result in found:
                check(result.error_code, getattr(result, "error_message", None))
            return found

        return await self._client.retrying(attempt)

    async def ask_coordinator(
        self,
        group: str,
        api_key: ApiKey,
        request: Any,
        error_of: Callable[[Any], int],
        *,
        max_version: int | None = None,
    ) -> Any:
        """The response of a group's coordinator, found again when it has moved."""

        async def attempt() -> Any:
            response = await self._client.call_coordinator(group, api_key, request, max_version=max_version)
            error = error_of(response)
            if error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._client.forget_coordinator(group)
            check(error, place=f"group {group}")
            return response

        return await self._client.retrying(attempt)

    async def _ask_leaders(
        self,
        partitions: Sequence[TopicPartition],
        api_key: ApiKey,
        make_request: Callable[[Sequence[TopicPartition]], Any],
    ) -> dict[TopicPartition, Any]:
        """Every partition's part of the answer of its leader; leaders are looked up again when they move."""
        found: dict[TopicPartition, Any] = {}

        async def attempt() -> None:
            missing = [tp for tp in partitions if tp not in found]
            unknown = [tp.topic for tp in missing if self._client.cluster.leader(tp) == NO_LEADER]
            if unknown:
                await self._client.refresh(unknown)
            failure: KafkaError | None = None
            for node_id, group in sorted(self._client.cluster.by_leader(missing).items()):
                if node_id == NO_LEADER:
                    await self._client.leader(group[0])
                try:
                    work = self._client.send(api_key, make_request(group), node_id=node_id)
                    response = await self._client.while_leading(work, node_id, group)
                except MovedError:
                    raise
                except OSError:
                    for tp in group:
                        self._client.forget_leader(tp)
                    raise
                for topic in response.topics:
                    for partition in topic.partitions:
                        tp = TopicPartition(topic.name, partition.partition_index)
                        if partition.error_code:
                            self._client.forget_leader(tp)
                            failure = KafkaError(ErrorCode(partition.error_code), place=f"partition {tp}")
                        else:
                            found[tp] = partition
            if failure is not None:
                raise failure

        await self._client.retrying(attempt)
        return {tp: found[tp] for tp in partitions}


def _topics(
    partitions: Sequence[TopicPartition],
    make_topic: Callable[..., Any],
    make_partition: Callable[[TopicPartition], Any],
) -> list[Any]:
    """The topics of a request, with a part for every partition."""
    return [
        make_topic(name=topic, partitions=[make_partition(tp) for tp in group])
        for topic, group in by_topic(partitions).items()
    ]


def by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[TopicPartition]]:
    grouped: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        grouped.setdefault(tp.topic, []).append(tp)
    return grouped
