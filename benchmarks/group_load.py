"""Loads on the group coordinator, by raw requests of many members at once. One JSON line on stdout.

group_load.py rebalance PORT PROTOCOL            ms until the last of fifty members has its partitions, all
                                                 joining at once; PROTOCOL is classic or consumer
group_load.py commits   PORT SECS                offset commits per second, one partition each, five in flight
group_load.py fetch     PORT PARTITIONS COUNT    us for one OffsetFetch of a group with PARTITIONS partitions
"""

import asyncio
import json
import socket
import statistics
import struct
import sys
import time
import uuid
from typing import Any

from odradek.client.connection import BrokerConnection
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_encoder, request_types, response_decoder

TOPIC = "group-load"  # 1,000 partitions, for commits
READ = "group-load-100"  # two for each member
HOST = "127.0.0.1"
MEMBERS = 50
# member metadata of the classic protocol: version int16, topics, user data null; its assignment: the same
# version, then per topic the partitions, user data null
SUBSCRIPTION = struct.pack(">hih", 0, 1, len(READ)) + READ.encode() + struct.pack(">i", -1)


def assignment(partitions: list[int]) -> bytes:
    body = struct.pack(">hih", 0, 1, len(READ)) + READ.encode()
    return body + struct.pack(f">i{len(partitions)}ii", len(partitions), *partitions, -1)


async def connect(port: int) -> BrokerConnection:
    return await BrokerConnection.open(RealRuntime(), HOST, port, client_id="load")


async def call(connection: BrokerConnection, api: ApiKey, version: int, request: Any) -> Any:
    return await connection.send(api, request, version)


async def coordinator(port: int, group: str) -> BrokerConnection:
    """A connection to the only broker, once it coordinates the group."""
    connection = await connect(port)
    types = request_types(ApiKey.FIND_COORDINATOR)
    while True:
        request = types.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        answer = await call(connection, ApiKey.FIND_COORDINATOR, 4, request)
        if answer.coordinators[0].error_code == 0:
            return connection
        await asyncio.sleep(0.1)


async def classic_member(connection: BrokerConnection, group: str, synced: dict[str, int]) -> None:
    """Join and sync, again whenever the group rebalances, until all members are in one generation."""
    beat = request_types(ApiKey.HEARTBEAT)
    member_id = ""
    while True:
        joined = await join(connection, group, member_id)
        member_id = joined.member_id
        if joined.error_code or await sync(connection, group, joined):
            continue
        synced[member_id] = joined.generation_id
        while True:
            if len(synced) == MEMBERS and len(set(synced.values())) == 1:
                return
            request = beat.HeartbeatRequest(
                group_id=group,
                generation_id=joined.generation_id,
                member_id=member_id,
                group_instance_id=None,
            )
            if (await call(connection, ApiKey.HEARTBEAT, 4, request)).error_code:
                break
            await asyncio.sleep(0.005)


async def join(connection: BrokerConnection, group: str, member_id: str) -> Any:
    types = request_types(ApiKey.JOIN_GROUP)
    request = types.JoinGroupRequest(
        group_id=group,
        session_timeout=30_000,
        rebalance_timeout=60_000,
        member_id=member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[types.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )
    return await call(connection, ApiKey.JOIN_GROUP, 7, request)


async def sync(connection: BrokerConnection, group: str, joined: Any) -> int:
    """The error of the sync; the leader gives every member its share."""
    types = request_types(ApiKey.SYNC_GROUP)
    members = [m.member_id for m in joined.members] if joined.leader == joined.member_id else []
    assignments = [
        types.SyncGroupRequestAssignment(
            member_id=member, assignment=assignment(list(range(i, 2 * MEMBERS, len(members))))
        )
        for i, member in enumerate(members)
    ]
    request = types.SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=assignments,
    )
    answer = await call(connection, ApiKey.SYNC_GROUP, 5, request)
    return int(answer.error_code)


async def modern_member(
    connection: BrokerConnection, group: str, shares: dict[str, int], wanted: int
) -> None:
    """Heartbeat, acknowledging every change, until every member owns as many partitions as wanted."""
    types = request_types(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    member_id, epoch = str(uuid.uuid4()), 0
    owned: list[Any] = []
    while True:
        first = epoch == 0
        answer = await call(
            connection,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            types.ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=member_id,
                member_epoch=epoch,
                instance_id=None,
                rack_id=None,
                rebalance_timeout=60_000 if first else -1,
                subscribed_topic_names=[READ] if first else None,
                subscribed_topic_regex=None,
                server_assignor=None,
                topic_partitions=owned,
            ),
        )
        if answer.error_code:
            raise SystemExit(f"heartbeat: error {answer.error_code} {answer.error_message}")
        epoch = answer.member_epoch
        if answer.assignment is not None:
            owned = [
                types.TopicPartitions(topic_id=t.topic_id, partitions=list(t.partitions))
                for t in answer.assignment.topic_partitions
            ]
        shares[member_id] = sum(len(t.partitions) for t in owned)
        if len(shares) == MEMBERS and all(share == wanted for share in shares.values()):
            return
        await asyncio.sleep(0.005)


async def rebalance(port: int, protocol: str) -> dict[str, float]:
    group = f"load-{uuid.uuid4().hex[:8]}"
    connections = [await coordinator(port, group) for _ in range(MEMBERS)]
    began = time.perf_counter()
    known: dict[str, int] = {}
    if protocol == "classic":
        work = [classic_member(c, group, known) for c in connections]
    else:
        work = [modern_member(c, group, known, 2) for c in connections]
    await asyncio.gather(*work)
    return {"ms": (time.perf_counter() - began) * 1000}


def commit(group: str, partitions: range, offset: int) -> Any:
    types = request_types(ApiKey.OFFSET_COMMIT)
    rows = [
        types.OffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata="")
        for p in partitions
    ]
    topic = types.OffsetCommitRequestTopic(name=TOPIC, partitions=rows)
    return types.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[topic],
    )


async def commits(port: int, secs: float) -> dict[str, float]:
    group = f"load-{uuid.uuid4().hex[:8]}"
    connection = await coordinator(port, group)
    done = 0
    end = time.perf_counter() + secs

    async def one() -> None:
        nonlocal done
        while time.perf_counter() < end:
            answer = await call(connection, ApiKey.OFFSET_COMMIT, 8, commit(group, range(1), done))
            if answer.topics[0].partitions[0].error_code:
                raise SystemExit(f"commit: error {answer.topics[0].partitions[0].error_code}")
            done += 1

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(5)))
    return {"rate": done / (time.perf_counter() - began)}


async def fetch(port: int, partitions: int, count: int) -> dict[str, float]:
    """Until the last byte of the answer is there: what a client then makes of it is not the broker's."""
    group = f"load-{uuid.uuid4().hex[:8]}"
    connection = await coordinator(port, group)
    await call(connection, ApiKey.OFFSET_COMMIT, 8, commit(group, range(partitions), 7))
    types = request_types(ApiKey.OFFSET_FETCH)
    wanted = types.OffsetFetchRequestGroup(group_id=group, topics=None)
    body = request_encoder(ApiKey.OFFSET_FETCH, 8)(
        types.OffsetFetchRequest(groups=[wanted], require_stable=True)
    )
    head = struct.pack(">hhih4sB", ApiKey.OFFSET_FETCH, 8, 1, 4, b"load", 0)
    frame = struct.pack(">i", len(head) + len(body)) + head + body
    times = []
    with socket.create_connection((HOST, port)) as raw, raw.makefile("rb") as answers:
        for _ in range(count):
            began = time.perf_counter()
            raw.sendall(frame)
            answer = answers.read(int.from_bytes(answers.read(4)))
            times.append(time.perf_counter() - began)
    decoded, _ = response_decoder(ApiKey.OFFSET_FETCH, 8)(answer, 5)
    assert len(decoded.groups[0].topics[0].partitions) == partitions
    return {"us": statistics.median(times) * 1e6}


def main() -> None:
    kind, port, *rest = sys.argv[1:]
    if kind == "rebalance":
        result = asyncio.run(rebalance(int(port), rest[0]))
    elif kind == "commits":
        result = asyncio.run(commits(int(port), float(rest[0])))
    else:
        result = asyncio.run(fetch(int(port), int(rest[0]), int(rest[1])))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
