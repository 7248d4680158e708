"""Conversations about leaders, reassignments, log dirs, quotas, credentials, ACLs and delegation tokens.

One per API, see world.py. None of them changes anything on one node without an authorizer.
"""

from collections.abc import Iterator
from typing import Any

from tests.compat.world import STRANGER, World, scenario

ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ACL = {
    "resource_type": 2,
    "resource_name": "x",
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


@scenario(43)
def elect_leaders(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(*asked: tuple[str, list[int]], kind: int = 0) -> dict[str, Any]:
        rows = [{"topic": name, "partitions": partitions} for name, partitions in asked]
        return {"election_type": kind, "topic_partitions": rows, "timeout": 10_000}

    for kind in (0, 1) if version else (0,):
        yield values((world.topic, [0, 1]), kind=kind)
        yield values((world.topic, [0, 9, -1]), (world.other, [0]), ("no/such", [0]), kind=kind)
        yield values(kind=kind) | {"topic_partitions": None}
    yield values()
    yield values((world.topic, []))
    yield values((world.topic, [0, 0]), (world.topic, [1]))
    if version:
        yield values((world.topic, [0]), (world.other, [0]), kind=7)
        yield values(kind=7)
        yield values(kind=7) | {"topic_partitions": None}


@scenario(46)
def list_partition_reassignments(world: World, version: int) -> Iterator[dict[str, Any]]:
    for names in (None, [], [world.topic], [world.topic, world.other, ""]):
        rows = None if names is None else [{"name": name, "partition_indexes": [0, 9]} for name in names]
        yield {"timeout": 10_000, "topics": rows}


@scenario(45)
def alter_partition_reassignments(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(*asked: tuple[str, dict[int, list[int] | None]], resize: bool = True) -> dict[str, Any]:
        rows = [
            {
                "name": name,
                "partitions": [{"partition_index": i, "replicas": replicas} for i, replicas in row.items()],
            }
            for name, row in asked
        ]
        return {"timeout": 10_000, "topics": rows, "allow_replication_factor_change": resize}

    here, topic = world.node_id, world.topic
    yield values()
    yield values(resize=False)
    yield values((topic, {}))
    yield values((topic, {0: [here], 1: None}))
    yield values((topic, {0: [here]}), resize=False)
    yield values((topic, {9: [here], 0: [here]}), (world.other, {0: [here]}))
    yield values((topic, {9: None}), (world.other, {0: None}))
    yield values((topic, {0: [99], 1: [here, here]}))
    yield values((topic, {0: [], 1: [here, 99]}), resize=False)
    yield values((topic, {0: [-1]}), (topic, {1: [here]}))


@scenario(34)
def alter_replica_log_dirs(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(*asked: tuple[str, dict[str, list[int]]]) -> dict[str, Any]:
        return {
            "dirs": [
                {"path": path, "topics": [{"name": n, "partitions": p} for n, p in topics.items()]}
                for path, topics in asked
            ]
        }

    here = world.log_dir()
    yield values((here, {world.topic: [0]}))
    yield values()
    yield values((here, {world.topic: [0, 9], world.other: [0]}))
    yield values(("/no/such", {world.topic: [0, 9], world.other: [0]}))
    yield values(("relative", {world.topic: [0]}))
    yield values((here + "/", {world.topic: [0]}))
    yield values((here, {world.topic: [0, 1]}), ("/no/such", {world.topic: [1]}))
    yield values((here, {world.topic: []}))
    yield values((here, {}))


@scenario(48)
def describe_client_quotas(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(*asked: tuple[str, int, str | None], strict: bool = False) -> dict[str, Any]:
        rows = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in asked]
        return {"components": rows, "strict": strict}

    yield values()
    yield values(strict=True)
    yield values(("user", 0, "a"))
    yield values(("user", 1, None), ("client-id", 2, None), strict=True)
    yield values(("ip", 2, None))
    yield values(("ip", 2, None), ("user", 2, None))
    yield values(("no-such", 2, None))
    yield values(("", 2, None))
    yield values(("user", 9, None))
    yield values(("user", 0, None))
    yield values(("user", 1, "x"))
    yield values(("user", 2, "x"))
    yield values(("user", 2, None), ("user", 2, None))
    yield values(("no-such", 9, None))
    yield values(("user", 2, None), ("no-such", 2, None), ("", 2, None))
    yield values(("ip", 2, None), ("user", 2, None), ("no-such", 2, None))


@scenario(50)
def describe_user_scram_credentials(world: World, version: int) -> Iterator[dict[str, Any]]:
    for names in (None, [], ["a"], ["b", "a", "b", ""]):
        yield {"users": None if names is None else [{"name": name} for name in names]}


@scenario(29)
def describe_acls(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield ANY_ACL
    yield {**ANY_ACL, "resource_type_filter": 2, "resource_name_filter": "x", "pattern_type_filter": 3}
    yield {**ANY_ACL, "operation": 99}


@scenario(30)
def create_acls(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"creations": []}
    yield {"creations": [ACL, ACL]}
    yield {"creations": [{**ACL, "principal": "nobody", "resource_name": ""}, {**ACL, "operation": 99}]}


@scenario(31)
def delete_acls(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"filters": []}
    yield {"filters": [ANY_ACL, {**ANY_ACL, "operation": 99}]}


@scenario(38)
def create_delegation_token(world: World, version: int) -> Iterator[dict[str, Any]]:
    renewer = {"principal_type": "User", "principal_name": "r"}
    nobody = {"owner_principal_type": None, "owner_principal_name": None}
    yield {"renewers": [], "max_lifetime": -1, **nobody}
    owner = {"owner_principal_type": "User", "owner_principal_name": "b"}
    yield {"renewers": [renewer], "max_lifetime": 1, **owner}
    yield {"renewers": [renewer], "max_lifetime": 1, "owner_principal_type": "", "owner_principal_name": ""}


@scenario(39)
def renew_delegation_token(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"hmac": b"x", "renew_period": 1}


@scenario(40)
def expire_delegation_token(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"hmac": b"", "expiry_time_period": -1}


@scenario(41)
def describe_delegation_token(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"owners": None}
    yield {"owners": []}
    yield {"owners": [{"principal_type": "User", "principal_name": "a"}]}


@scenario(64)
def unregister_broker(world: World, version: int) -> Iterator[dict[str, Any]]:
    """Only of a broker that does not exist: the node itself is not taken out of the cluster here."""
    yield {"broker_id": 99}
    yield {"broker_id": -1}


@scenario(80)
def add_raft_voter(world: World, version: int) -> Iterator[dict[str, Any]]:
    """Nobody is added: a voter with this id, no listener, another cluster."""

    def values(voter_id: int, **others: Any) -> dict[str, Any]:
        listener = {"name": "CONTROLLER", "host": "localhost", "port": 1}
        known = {"cluster_id": None, "timeout": 1000, "voter_directory_id": STRANGER}
        return {**known, "voter_id": voter_id, "listeners": [listener], "ack_when_committed": True, **others}

    yield values(world.node_id)
    yield values(99, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    yield values(99, listeners=[])
    yield values(-1)


@scenario(81)
def remove_raft_voter(world: World, version: int) -> Iterator[dict[str, Any]]:
    """Nobody is removed: another directory, an unknown id, another cluster."""

    def values(voter_id: int, **others: Any) -> dict[str, Any]:
        return {"cluster_id": None, "voter_id": voter_id, "voter_directory_id": STRANGER, **others}

    yield values(world.node_id)
    yield values(99)
    yield values(world.node_id, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    yield values(-1)
