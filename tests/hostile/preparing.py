"""Prepares a node for a hostile request: a member, a transaction, topics."""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from odradek.core.types import ZERO_UUID
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.hostile.names import Names
from tests.hostile.shapes import Path, Shape, frame
from tests.hostile.world import Client, World

Prepare = Callable[[World, Client, int, Path, int], dict[str, Any]]
DOOMED = 200


def _own_topics(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    """Topics that may be deleted or grown."""
    if not path:
        return {}
    names = [world.fresh("doomed") for _ in range(min(count, DOOMED) if len(path) == 1 else 1)]
    world.create_topics(client, names)
    given: dict[str, Any] = {"topics of the case": names, "name": names[0]}
    return given | {"count": 1 + count if path[-1:] == ("assignments",) else 2}


def _doomed_topics(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    return _own_topics(world, client, version, path, count) | ({"each topic_id": ZERO_UUID})


def _doomed_groups(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    names = [world.fresh("doomed") for _ in range(min(count, DOOMED) if path else 1)]
    for name in names:
        world.commit(client, name, 1)
    return {"groups of the case": names}


def _committed_offsets(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    group = world.fresh("doomed")
    world.commit(client, group, min(count, world.size.wide))
    return {"group_id": group}


def _assigned(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    given: dict[str, Any] = {"name": world.fresh("made")} if len(path) > 1 else {}
    if path[1:2] != ("configs",):
        given |= {"num_partitions": -1, "replication_factor": -1}
    return given | {"each num_partitions": -1, "each replication_factor": -1}


def _joining(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    group = world.fresh("joined")
    if version < 4:
        return {"group_id": group}
    types = request_types(ApiKey.JOIN_GROUP)
    answer = world.call(
        client,
        ApiKey.JOIN_GROUP,
        version,
        group_id=group,
        session_timeout=30_000,
        rebalance_timeout=30_000,
        member_id="",
        protocol_type="consumer",
        protocols=[types.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return {"group_id": group, "member_id": answer.member_id}


def _joined(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    group = world.fresh("joined")
    member_id, generation_id = world.join_group(client, group)
    return {
        "group_id": group,
        "member_id": member_id,
        "generation_id": generation_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }


def _consuming(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    group = world.fresh("consuming")
    given: dict[str, Any] = {"group_id": group, "member_id": "member", "topic_partitions": ()}
    if path[:1] != ("topic_partitions",):
        return given | {"member_epoch": 0, "subscribed_topic_names": ()}
    epoch = world.join_consumer_group(client, group)
    return given | {"member_epoch": epoch, "subscribed_topic_names": None}


def _in_transaction(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    transactional_id = world.fresh("txn")
    producer_id, epoch = world.init_producer(client, transactional_id)
    given: dict[str, Any] = {}
    for prefix in ("", "v3_and_below_"):
        given |= {f"{prefix}transactional_id": transactional_id}
        given |= {f"{prefix}producer_id": producer_id, f"{prefix}producer_epoch": epoch}
    given |= {"each producer_id": producer_id, "each producer_epoch": epoch}
    return given | {"repeated transactional_id": transactional_id}


def _committing(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    given = _in_transaction(world, client, version, path, count)
    if version < 5:
        answer = world.call(
            client,
            ApiKey.ADD_OFFSETS_TO_TXN,
            3,
            transactional_id=given["transactional_id"],
            producer_id=given["producer_id"],
            producer_epoch=given["producer_epoch"],
            group_id=world.groups[1],
        )
        assert answer.error_code == 0, answer
    return given | {"group_id": world.groups[1]}


def _consumer_groups(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    return {"groups of the case": world.consumer_groups}


def _quorum(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    return {"topics of the case": ["__cluster_metadata"], "topic_name": "__cluster_metadata"}


def _in_session(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    """A session that knows the partitions that are to be forgotten."""
    if path[:1] != ("forgotten_topics_data",):
        return {}
    shape = Shape("known", ("topics", "partitions"))
    asked = frame(
        ApiKey.FETCH, version, shape, min(count, world.size.wide), Names(world, {"session_epoch": 0})
    )
    answer = world.place.ask(client, asked)
    assert answer is not None
    # correlation id i32, tags, throttle time i32, error code i16, session id i32
    (session_id,) = struct.unpack_from(">i", answer, 11)
    return {"session_id": session_id, "session_epoch": 1}


def _by_name(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    return {"each topic_id": ZERO_UUID}


def _log_dir(world: World, client: Client, version: int, path: Path, count: int) -> dict[str, Any]:
    """A directory that there is: replicas are looked for there."""
    answer = world.call(client, ApiKey.DESCRIBE_LOG_DIRS, 5, topics=())
    return {"path": answer.results[0].log_dir, "each path": answer.results[0].log_dir}


_PREPARE: dict[ApiKey, Prepare] = {
    ApiKey.FETCH: _in_session,
    ApiKey.METADATA: _by_name,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _log_dir,
    ApiKey.DESCRIBE_QUORUM: _quorum,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _consumer_groups,
    ApiKey.CREATE_TOPICS: _assigned,
    ApiKey.DELETE_TOPICS: _doomed_topics,
    ApiKey.CREATE_PARTITIONS: _own_topics,
    ApiKey.DELETE_GROUPS: _doomed_groups,
    ApiKey.OFFSET_DELETE: _committed_offsets,
    ApiKey.JOIN_GROUP: _joining,
    ApiKey.SYNC_GROUP: _joined,
    ApiKey.LEAVE_GROUP: _joined,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consuming,
    ApiKey.ADD_PARTITIONS_TO_TXN: _in_transaction,
    ApiKey.ADD_OFFSETS_TO_TXN: _in_transaction,
    ApiKey.END_TXN: _in_transaction,
    ApiKey.TXN_OFFSET_COMMIT: _committing,
}


def names_for(
    world: World,
    client: Client,
    api_key: ApiKey,
    version: int,
    path: Path,
    count: int,
    over: Mapping[str, Any],
) -> Names:
    """The values of a request that is to be taken, after what has to come before it."""
    prepare = _PREPARE.get(api_key)
    given = {} if prepare is None else prepare(world, client, version, path, count)
    world.place.wait_until_idle()
    return Names(world, {**given, **over})
