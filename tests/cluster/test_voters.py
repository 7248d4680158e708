"""Voters that come and go while the quorum runs (KIP-853): by command, by themselves, at other addresses."""

import asyncio
import shutil
import socket
from collections.abc import Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from odradek.broker.node import Node
from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import HOST, ClusterPlan, plan_cluster
from odradek.client import Admin, Client
from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID, uuid_to_text
from odradek.metadata.formatting import OBSERVER, STANDALONE, STATIC
from odradek.raft.voters import VoterEndpoint, VoterSet
from odradek.runtime.eager import new_event_loop
from odradek.runtime.real import RealRuntime
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey
from tests.cluster.nodes import alone, config_of, formatted, free_ports, nodes_on_this_loop
from tests.support.command import Outcome, odradek
from tests.unit.metadata.stack import until


def active(nodes: list[Node]) -> Node:
    (found,) = [node for node in nodes if node.quorum.is_active]
    return found


def voters(nodes: list[Node]) -> VoterSet:
    found = active(nodes).quorum.raft.facts.voters
    assert found is not None
    return found


async def leads(nodes: list[Node]) -> None:
    await until(lambda: sum(node.quorum.is_active for node in nodes) == 1)


def fourth(folder: Path, plan: ClusterPlan, port: int) -> dict[str, str]:
    return {
        "node.id": "4",
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": plan.nodes[0].properties[
            "controller.quorum.bootstrap.servers"
        ],
        "log.dirs": str(folder / "node-4"),
    }


def formatted_observer(properties: Mapping[str, str], cluster_id: str) -> Node:
    config = config_of(properties)
    format_node(config, cluster_id, OBSERVER)
    return Node(config, RealRuntime())


async def quorum(plan: ClusterPlan, *arguments: str) -> Outcome:
    run = partial(odradek, "cluster", "quorum", *arguments, "-b", plan.bootstrap_servers)
    return await asyncio.get_running_loop().run_in_executor(None, run)


async def features(plan: ClusterPlan, *arguments: str) -> Outcome:
    run = partial(odradek, "cluster", "features", *arguments, "-b", plan.bootstrap_servers)
    return await asyncio.get_running_loop().run_in_executor(None, run)


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(story)


def test_a_controller_is_added_the_leader_removed_and_the_quorum_goes_on(tmp_path: Path) -> None:
    plan = formatted(tmp_path, 3)
    (ports,) = free_ports(1)
    address = f"4@{HOST}:{ports.controller}"

    async def change() -> int:
        async with nodes_on_this_loop(plan) as nodes, Client(plan.bootstrap_servers) as client:
            refused = await quorum(plan, "add", address)
            assert refused.code == 1 and "node 4 does not follow the quorum" in refused.stderr
            node = formatted_observer(fourth(tmp_path, plan, ports.controller), nodes[0].cluster_id)
            await node.start()
            nodes.append(node)
            leader = active(nodes)
            await until(lambda: any(o.key.id == 4 for o in leader.quorum.raft.node.replicas()[1]))

            looked = await quorum(plan, "add", address, "--dry-run")
            assert looked.text.split() == ["NODE", "BEFORE", "AFTER", "4", "observer", "voter"]
            assert voters(nodes).ids == (1, 2, 3)
            added = await quorum(plan, "add", address)
            assert (added.code, added.stderr, added.text) == (0, "", looked.text)
            assert voters(nodes).get(4) == (
                4,
                node.quorum.raft.directory_id,
                (VoterEndpoint("CONTROLLER", HOST, ports.controller),),
                0,
                1,
            )
            await until(lambda: type(node.quorum.raft.node.role).__name__ == "Follower")
            again = await quorum(plan, "add", address)
            assert (again.code, again.stderr) == (
                1,
                "error: voter 4: DUPLICATE_VOTER: node 4 votes already\n  next: odradek cluster quorum\n",
            )

            unknown = await quorum(plan, "remove", "9", "-y")
            assert unknown.code == 1 and "VOTER_NOT_FOUND: node 9 does not vote" in unknown.stderr
            asks = await quorum(plan, "remove", str(leader.config.node_id))
            assert asks.code == 2 and "Remove voter" in asks.stderr
            removed = await quorum(plan, "remove", str(leader.config.node_id), "-y")
            assert (removed.code, removed.stderr) == (0, "")
            await until(lambda: not leader.quorum.is_active)
            await leads(nodes)
            assert leader.config.node_id not in voters(nodes).ids and len(voters(nodes).ids) == 3
            await Admin(client).create_topics({"after": 1}, replication_factor=1)
            return leader.config.node_id

    async def again(removed: int) -> None:
        """Nodes that start again have their voters in the log; two of them, the fourth included, lead on."""
        more = [*plan.nodes, plan.nodes[0]._replace(properties=fourth(tmp_path, plan, ports.controller))]
        async with nodes_on_this_loop(plan._replace(nodes=tuple(more))) as nodes:
            await leads(nodes)
            assert sorted(voters(nodes).ids) == sorted({1, 2, 3, 4} - {removed})
            (first, _) = [n for n in nodes if n.config.node_id not in (removed, 4)]
            nodes.remove(first)
            await first.stop()
            await leads(nodes)
            async with Client(plan.bootstrap_servers) as client:
                await Admin(client).create_topics({"later": 1}, replication_factor=1)
            assert {"after", "later"} <= set(active(nodes).metadata.image.topics_by_name)

    removed = []

    async def both() -> None:
        removed.append(await change())
        await again(removed[0])

    run(both())


def test_a_controller_joins_by_itself_again_after_its_disk_is_lost_and_tells_where_it_listens(
    tmp_path: Path,
) -> None:
    quick = {"controller.quorum.fetch.timeout.ms": "1000"}
    plan = formatted(tmp_path, 3, quick)
    first, second = free_ports(2)

    async def story() -> None:
        async with nodes_on_this_loop(plan) as nodes:
            cluster_id = nodes[0].cluster_id
            settings = fourth(tmp_path, plan, first.controller) | quick
            settings["controller.quorum.auto.join.enable"] = "true"
            seen = []
            for _ in range(2):
                shutil.rmtree(tmp_path / "node-4", ignore_errors=True)
                node = formatted_observer(settings, cluster_id)
                await node.start()
                directory_id = node.quorum.raft.directory_id
                await until(lambda node=node, it=directory_id: voters([*nodes, node]).has(4, it))
                seen.append(directory_id)
                await node.stop()
            assert len(set(seen)) == 2 and ZERO_UUID not in seen

            settings["listeners"] = f"CONTROLLER://{HOST}:{second.controller}"
            node = Node(config_of(settings), RealRuntime())
            await node.start()
            nodes.append(node)
            moved = (VoterEndpoint("CONTROLLER", HOST, second.controller),)
            await until(lambda: (voter := voters(nodes).get(4)) is not None and voter.endpoints == moved)
            shown = await quorum(plan, "-f", "json")
            assert f'"{HOST}:{second.controller}"' in shown.text

    run(story())


def test_voters_of_the_configuration_cannot_be_changed(tmp_path: Path) -> None:
    async def story() -> None:
        node, plan = await alone(tmp_path, STATIC)
        try:
            outcome = await quorum(plan, "remove", "1", "-y")
        finally:
            await node.stop()
        assert outcome.code == 1
        assert "voter 1: UNSUPPORTED_VERSION: kraft.version is 0" in outcome.stderr
        assert "next: odradek cluster features upgrade kraft.version 1" in outcome.stderr

    run(story())


def test_voters_of_the_configuration_are_recorded_by_an_upgrade_of_kraft_version(tmp_path: Path) -> None:
    """Once each of the three has told its directory; then one of them can be removed."""
    ports = free_ports(3)
    quick = {"controller.quorum.fetch.timeout.ms": "1000"}
    named = ",".join(f"{i}@{HOST}:{pair.controller}" for i, pair in enumerate(ports, 1))
    plan = plan_cluster(str(tmp_path), ports, [UUID(int=i) for i in range(3)], quick)
    nodes = []
    for planned in plan.nodes:
        properties = dict(planned.properties) | {"controller.quorum.voters": named}
        del properties["controller.quorum.bootstrap.servers"]
        format_node(config_of(properties), uuid_to_text(UUID(int=77)), STATIC)
        nodes.append(planned._replace(properties=properties))
    plan = plan._replace(nodes=tuple(nodes))

    async def story() -> None:
        async with nodes_on_this_loop(plan) as nodes:
            await leads(nodes)
            assert active(nodes).quorum.raft.facts.kraft_version == 0
            outcome = await features(plan, "upgrade", "kraft.version", "1")
            while outcome.code:
                assert "not all of the voters support it" in outcome.stderr
                await asyncio.sleep(0.1)
                outcome = await features(plan, "upgrade", "kraft.version", "1")
            for node in nodes:
                await until(lambda node=node: node.quorum.raft.facts.kraft_version == 1)
                recorded = node.quorum.raft.facts.voters
                assert recorded is not None
                assert {v.id: v.directory_id for v in recorded.voters} == {
                    n.config.node_id: n.quorum.raft.directory_id for n in nodes
                }
            follower = next(n for n in nodes if not n.quorum.is_active)
            removed = await quorum(plan, "remove", str(follower.config.node_id), "-y")
            assert (removed.code, removed.stderr) == (0, "")
            assert len(voters(nodes).ids) == 2
            again = await features(plan, "downgrade", "kraft.version", "0", "-y")
            assert again.code == 1 and "Can't downgrade" in again.stderr

    run(story())


def test_a_change_waits_for_none_that_is_under_way_and_the_last_voter_stays(tmp_path: Path) -> None:
    async def story() -> None:
        node, plan = await alone(tmp_path, STANDALONE)
        with socket.create_server((HOST, 0)) as silent:
            new = f"5@{HOST}:{silent.getsockname()[1]}:{uuid_to_text(UUID(int=5))}"
            adding = asyncio.ensure_future(quorum(plan, "add", new))
            lead = node.quorum.raft.node._r.leadership
            await until(lambda: lead is not None and lead.change is not None)
            refused = await node.quorum.channel.call(
                ApiKey.REMOVE_RAFT_VOTER,
                requests.remove_raft_voter.RemoveRaftVoterRequest(cluster_id=None, voter_id=1),
            )
            assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
            assert "previous voter change" in refused.error_message
            unanswered = await adding
        last = await quorum(plan, "remove", "1", "-y")
        await node.stop()
        assert unanswered.code == 1
        assert "voter 5: REQUEST_TIMED_OUT" in unanswered.stderr and "next: try again" in unanswered.stderr
        assert (last.code, last.stderr) == (
            1,
            "error: voter 1: INVALID_REQUEST: Cannot remove the last voter\n",
        )

    run(story())


def test_others_reach_a_voter_by_what_it_advertises(tmp_path: Path) -> None:
    (ports,) = free_ports(1)
    every, here = f"CONTROLLER://0.0.0.0:{ports.controller}", f"CONTROLLER://{HOST}:{ports.controller}"
    broker = f"PLAINTEXT://{HOST}:{ports.broker}"

    async def endpoints(**settings: str) -> tuple[tuple[VoterEndpoint, ...], tuple[VoterEndpoint, ...]]:
        """As the quorum has them, and as the node would tell them to a leader."""
        given = {key.replace("_", "."): value for key, value in settings.items()}
        node, _ = await alone(tmp_path, STANDALONE, given)
        try:
            voter = voters([node]).get(1)
            assert voter is not None
            return voter.endpoints, node.quorum.raft.node.endpoints
        finally:
            await node.stop()

    async def story() -> None:
        known = (VoterEndpoint("CONTROLLER", HOST, ports.controller),)
        both = {"listeners": f"{broker},{every}", "advertised_listeners": f"{broker},{here}"}
        assert await endpoints(**both) == (known, known)
        assert await endpoints(listeners=f"{broker},{every}") == (known, ()), "0.0.0.0 is no news to anybody"

    run(story())
