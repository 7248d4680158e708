"""What /metrics of three nodes says of their quorum, before and after the leader goes."""

import asyncio
import math
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from odradek.broker.node import Node
from odradek.client import Admin, Client
from odradek.http.app import App
from odradek.http.message import Request
from odradek.runtime.eager import new_event_loop
from tests.cluster.nodes import formatted, nodes_on_this_loop
from tests.unit.metadata.stack import until

RAFT, CHANNEL = "kafka_server_raftmetrics", "kafka_server_raftchannelmetrics"
CONTROLLER, BROKER = "kafka_controller_kafkacontroller", "kafka_server_brokermetadatametrics"


async def scrape(node: Node) -> dict[str, float]:
    answer = await App(node)(Request("GET", "/metrics", True))
    assert answer.status == 200
    found = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            label = next(
                (f"/{v}" for k, v in sample.labels.items() if k in ("current_state", "quantile")), ""
            )
            found[sample.name + label] = sample.value
    return found


async def scrapes(nodes: Iterable[Node]) -> dict[int, dict[str, float]]:
    return {node.config.node_id: await scrape(node) for node in nodes}


def test_the_metrics_of_three_nodes_tell_who_leads_who_follows_and_how_quickly(tmp_path: Path) -> None:
    plan = formatted(tmp_path, 3)

    async def story() -> None:
        async with nodes_on_this_loop(plan) as nodes, Client(plan.bootstrap_servers) as client:
            await Admin(client).create_topics({"orders": 3}, replication_factor=1)
            (leader,) = [node for node in nodes if node.quorum.is_active]
            offset = leader.metadata.image.offset
            await until(lambda: all(node.metadata.image.offset >= offset for node in nodes))
            leader_id = leader.config.node_id
            seen = await scrapes(nodes)
            for node_id, values in seen.items():
                leads = node_id == leader_id
                assert values[f"{RAFT}_current_state/{'leader' if leads else 'follower'}"] == 1
                assert values[f"{RAFT}_current_leader"] == leader_id
                assert values[f"{RAFT}_current_epoch"] == values[f"{RAFT}_log_end_epoch"] >= 1
                assert values[f"{RAFT}_current_vote"] in (-1, 1, 2, 3)
                assert offset < values[f"{RAFT}_high_watermark"] <= values[f"{RAFT}_log_end_offset"]
                assert values[f"{RAFT}_number_of_voters"] == 3
                assert values[f"{RAFT}_number_of_observers"] == (0 if leads else -1)
                assert (values[f"{RAFT}_append_records_rate"] > 0) == leads
                assert (values[f"{RAFT}_fetch_records_rate"] > 0) == (not leads)
                assert math.isnan(values[f"{RAFT}_commit_latency_avg"]) == (not leads)
                assert 0 < values[f"{RAFT}_poll_idle_ratio_avg"] <= 1
                assert values[f"{CONTROLLER}_activecontrollercount"] == leads
                assert values[f"{CONTROLLER}_activebrokercount"] == 3
                assert values[f"{CONTROLLER}_fencedbrokercount"] == 0
                assert values[f"{CONTROLLER}_newactivecontrollerscount"] >= 1
                assert values[f"{CONTROLLER}_lastcommittedrecordoffset"] >= offset
                assert values[f"{CONTROLLER}_lastappliedrecordoffset"] >= offset
                assert values[f"{BROKER}_last_applied_record_offset"] >= offset
                assert 0 <= values[f"{BROKER}_last_applied_record_lag_ms"] < 30_000
                if leads:
                    assert values[f"{CONTROLLER}_lastappliedrecordlagms"] == 0
                assert values[f"{CONTROLLER}_metadataerrorcount"] == 0
                assert values[f"{BROKER}_metadata_load_error_count"] == 0
                assert values[f"{CONTROLLER}_timedoutbrokerheartbeatcount"] == 0
                decided = values["kafka_controller_controllereventmanager_eventqueuetimems_count"]
                assert (decided > 3) == leads
            led = seen[leader_id]
            assert 0 <= led[f"{RAFT}_commit_latency_avg"] <= led[f"{RAFT}_commit_latency_max"] < 30_000
            assert 0 <= led[f"{RAFT}_election_latency_avg"] <= led[f"{RAFT}_election_latency_max"] < 30_000
            follower_id = next(n for n in seen if n != leader_id)
            for name in ("request_total", "response_total", "incoming_byte_total", "outgoing_byte_total"):
                assert seen[follower_id][f"{CHANNEL}_{name}"] > 0, name
            assert seen[follower_id][f"{CHANNEL}_outgoing_byte_total"] > 20 * (
                seen[follower_id][f"{CHANNEL}_request_total"] - 1
            )

            nodes.remove(leader)
            await leader.stop()
            await until(lambda: any(node.quorum.is_active for node in nodes))
            after = await scrapes(nodes)
            assert sum(values[f"{CONTROLLER}_activecontrollercount"] for values in after.values()) == 1
            (new_id,) = [n for n, values in after.items() if values[f"{CONTROLLER}_activecontrollercount"]]
            assert after[new_id][f"{RAFT}_current_epoch"] > led[f"{RAFT}_current_epoch"]
            assert after[new_id][f"{RAFT}_current_vote"] == new_id
            assert after[new_id][f"{RAFT}_election_latency_max"] >= 0
            assert all(
                after[n][f"{CONTROLLER}_newactivecontrollerscount"]
                > seen[n][f"{CONTROLLER}_newactivecontrollerscount"]
                for n in after
            )

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(story())
