"""Every served API at every version Apache Kafka 4.3.1 advertises: the answers must be Apache's own.

`answers.json` has Apache's answers. Names replace everything that differs from run to run. To record them
again, run with ODRADEK_RECORD_ANSWERS=1 and ODRADEK_TEST_BOOTSTRAP set to an Apache broker. Error messages
are not compared, only whether there is one.
"""

import dataclasses
import datetime
import enum
import functools
import json
import os
import pathlib
import struct
import time
import uuid
from typing import Any

import pytest
from kio.index import load_request_schema

from tests.compat.scenarios import SCENARIOS, World
from tests.support.raw import Connection, entity_of, fields_of

HERE = pathlib.Path(__file__).parent
ANSWERS = HERE / "answers.json"
ADVERTISED = {
    row["key"]: (row["name"], row["min"], row["max"])
    for row in json.loads((HERE.parent / "golden/api-versions.json").read_text())["broker"]["apis"]
}
ADVERTISED_HERE = {22: (0, 6)}  # InitProducerId v6 (KIP-939) is stable here: see docs/compatibility.md
REFUSED = {0: 3}  # Produce is advertised from v0 for librdkafka's sake and served from v3
CASES = [
    (key, version)
    for key in SCENARIOS
    for version in range(max(ADVERTISED[key][1], REFUSED.get(key, 0)), ADVERTISED[key][2] + 1)
]
RECORDING = os.environ.get("ODRADEK_RECORD_ANSWERS") == "1"
NOW_AND_THEN = datetime.timedelta(days=365)

# Fields whose value says nothing about the protocol: machine, moment, or how far another test got.
VOLATILE = {
    *("host", "port", "client_host", "cluster_id", "log_dir", "total_bytes", "usable_bytes", "throttle_time"),
    *("session_id", "replica_directory_id", "offset_lag", "log_end_offset"),
    *("last_timestamp", "last_fetch_timestamp", "last_caught_up_timestamp", "zk_migration_ready"),
    *("finalized_features_epoch", "supported_features", "finalized_features"),
}
UNORDERED = {
    "subscribed_topic_names",
    *("configs", "config_resources", "partition_responses", "transaction_states", "active_producers"),
    *("results_by_topic_v3_and_below", "results_by_transaction", "topic_results", "results_by_partition"),
}
MOMENTS = {"timestamp", "transaction_start_time"}
HEAD = struct.Struct(">qiibIhiqqqhii")
TEXTS = {"error_message", "batch_index_error_message"}


class Names:
    """Replaces what is unique to a run by what it stands for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.known = {world.topic: "TOPIC", world.other: "OTHER", world.group: "GROUP"}
        self.producers: dict[int, str] = {}

    def text(self, value: str) -> str:
        if value in self.known:
            return self.known[value]
        if value.startswith(self.world.txn):
            return "TXN" + value.removeprefix(self.world.txn)
        for prefix in ("topic-", "other-", "group-", "none-", "raw-", "static-"):
            if value.startswith(prefix):
                return prefix.rstrip("-").upper() + "*"
        return value

    def batches(self, data: bytes) -> list[Any]:
        """Each batch as it is, but for a producer's, whose id and times are of this run."""
        rows: list[Any] = []
        while data:
            size = 12 + int.from_bytes(data[8:12])
            head, payload, rest = data[:61], data[61:size], data[size:]
            _, _, leader_epoch, magic, _, attributes, last, _, _, producer_id, epoch, sequence, count = (
                HEAD.unpack(head)
            )
            if producer_id == -1:
                rows.append(data[:size].hex())
            else:
                row = (
                    int.from_bytes(head[:8]),
                    leader_epoch,
                    magic,
                    attributes,
                    last,
                    epoch,
                    sequence,
                    count,
                )
                rows.append([self.plain(producer_id, "producer_id"), *row, payload.hex()])
            data = rest
        return rows

    def plain(self, value: Any, field: str = "") -> Any:
        if field in VOLATILE:
            return "*"
        if field == "documentation":
            return "text" if value else value
        if field in TEXTS:
            return None if value is None else "text"
        if field == "producer_id" and value != -1:
            return self.producers.setdefault(value, f"P{len(self.producers)}")
        if isinstance(value, enum.IntEnum):
            return int(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            row = {f.name: self.plain(getattr(value, f.name), f.name) for f in dataclasses.fields(value)}
            return compact_config(row)
        if isinstance(value, tuple):
            rows = [self.plain(v, field) for v in value]
            return sorted(rows, key=str) if field in UNORDERED else rows
        if isinstance(value, uuid.UUID):
            return "uuid" if value.int else None
        if isinstance(value, datetime.timedelta):
            return value // datetime.timedelta(milliseconds=1)
        if isinstance(value, datetime.datetime):
            recent = abs(datetime.datetime.now(datetime.UTC) - value) < NOW_AND_THEN
            return "now" if recent and value.year > 2023 else int(value.timestamp() * 1000)
        if field == "records" and value:
            return self.batches(bytes(value))
        if isinstance(value, bytes | memoryview):
            return bytes(value).hex()
        if field in MOMENTS and value > time.time() * 1000 - NOW_AND_THEN // datetime.timedelta(
            milliseconds=1
        ):
            return "now"
        if isinstance(value, str):
            return self.text(value)
        return value


def compact_config(row: dict[str, Any]) -> Any:
    """Config entries on one line each: there are hundreds."""
    if {"name", "value", "read_only"} <= row.keys():
        synonyms = [f"{s['name']}={s['value']}/{s['source']}" for s in row.pop("synonyms", [])]
        return " ".join(f"{k}={v}" for k, v in row.items()) + (f" {synonyms}" if synonyms else "")
    return row


def only_ours(api_key: int, answer: Any) -> Any:
    """Answers that list everything there is are cut down to this scenario's own things."""
    ours = {"TOPIC", "OTHER", "GROUP"}
    if api_key == 16:
        answer["groups"] = [g for g in answer["groups"] if g["group_id"] in ours]
    if api_key == 27:
        for marker in answer["markers"]:
            marker["topics"].sort(key=lambda t: t["name"])
            for topic in marker["topics"]:
                topic["partitions"].sort(key=lambda p: p["partition_index"])
    if api_key == 34:
        answer["results"].sort(key=lambda t: t["topic_name"])
        for topic in answer["results"]:
            topic["partitions"].sort(key=lambda p: p["partition_index"])
    if api_key == 43:
        # Where all topics were asked for there are those of other tests, each without a partition.
        answer["replica_election_results"] = [
            t for t in answer["replica_election_results"] if t["partition_result"] or t["topic"] in ours
        ]
    if api_key == 50:
        answer["results"].sort(key=lambda r: r["user"])
    if api_key == 18:
        answer["api_keys"] = [
            k for k in answer["api_keys"] if k["api_key"] in SCENARIOS and k["api_key"] not in ADVERTISED_HERE
        ]
    if api_key == 65:
        for topic in (topic for state in answer["transaction_states"] for topic in state["topics"]):
            topic["partitions"].sort()
    if api_key == 74:
        rows = answer["config_resources"]
        answer["config_resources"] = [
            r for r in rows if r["resource_name"] in ours or r.get("resource_type") in (4, 8)
        ]
    if api_key == 35 and "results" in answer:
        for result in answer["results"]:
            result["topics"] = [t for t in result["topics"] if t["name"] in ours]
            for topic in result["topics"]:
                topic["partitions"].sort(key=lambda p: p["partition_index"])
    if api_key == 68 and not (answer["member_id"] or "member-").startswith("member-"):
        answer["member_id"] = "given"
    if api_key == 69:
        answer["groups"].sort(key=lambda g: g["group_id"])
        for group in answer["groups"]:
            group["members"].sort(key=lambda m: m["member_id"])
    if api_key == 55:
        for partition in (p for t in answer["topics"] for p in t["partitions"] if p["error_code"] == 0):
            partition.update(leader_epoch="*", high_watermark="*")
        for node in answer.get("nodes", ()):
            del node["listeners"]  # only one with a port is named here: see test_quorum.py
    return answer


@functools.cache
def field_names(api_key: int) -> frozenset[str]:
    """Names of all fields in all versions of a request: a scenario that misspells one must not pass."""
    names: set[str] = set()

    def collect(cls: type) -> None:
        for field, annotation in fields_of(cls):
            names.add(field.name)
            nested = entity_of(annotation)
            if nested:
                collect(nested)

    _, low, high = ADVERTISED[api_key]
    for version in range(max(low, REFUSED.get(api_key, 0)), high + 1):
        collect(load_request_schema(api_key, version))
    return frozenset(names)


def check_spelling(api_key: int, values: Any) -> None:
    if isinstance(values, dict):
        unknown = values.keys() - field_names(api_key) - {"enable_2pc"}
        assert not unknown, f"no version of API {api_key} has {sorted(unknown)}"
        for value in values.values():
            check_spelling(api_key, value)
    elif isinstance(values, list):
        for value in values:
            check_spelling(api_key, value)


def hold(api_key: int, version: int, world: World) -> list[Any]:
    """Hold the whole conversation on one connection; the normalised answers."""
    names, answers = Names(world), []
    conversation = SCENARIOS[api_key](world, version)
    values = next(conversation, None)  # what it prepares is done by connections older than its own
    with world.connection or Connection(world.bootstrap) as connection:
        while values is not None:
            check_spelling(api_key, values)
            answer = connection.call(api_key, version, values)
            if api_key == 66:
                rows = [t for t in answer.transaction_states if t.transactional_id.startswith(world.txn)]
                rows.sort(key=lambda t: t.transactional_id)
                answer = dataclasses.replace(answer, transaction_states=tuple(rows))
            answers.append(only_ours(api_key, names.plain(answer)))
            try:
                values = conversation.send(answer)
            except StopIteration:
                values = None
    return answers


def without_extra_texts(got: Any, want: Any) -> Any:
    """An error message where Apache gives none is a help, not a difference."""
    if isinstance(got, dict) and isinstance(want, dict):
        return {
            k: None if k in TEXTS and want.get(k, "") is None else without_extra_texts(v, want.get(k))
            for k, v in got.items()
        }
    if isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        return [without_extra_texts(g, w) for g, w in zip(got, want, strict=True)]
    return got


def write(answers: dict[str, dict[str, list[Any]]]) -> None:
    """One answer per line, so that a difference between two recordings can be read."""
    apis = []
    for api, versions in answers.items():
        rows = [f'  "{v}": [\n' + ",\n".join(map(json.dumps, a)) + "]" for v, a in versions.items()]
        apis.append(f' "{api}": {{\n' + ",\n".join(rows) + "}")
    ANSWERS.write_text("{\n" + ",\n".join(apis) + "}\n")


@functools.cache
def recorded() -> dict[str, dict[str, list[Any]]]:
    answers: dict[str, dict[str, list[Any]]] = json.loads(ANSWERS.read_text())
    return answers


@pytest.mark.parametrize(("api_key", "version"), CASES, ids=[f"{ADVERTISED[k][0]}-v{v}" for k, v in CASES])
def test_every_version_is_answered_as_apache_answers_it(bootstrap, unique, api_key, version):
    answers = hold(api_key, version, World(bootstrap, unique))
    if RECORDING:
        all_answers = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
        all_answers.setdefault(ADVERTISED[api_key][0], {})[f"v{version}"] = answers
        write(all_answers)
        return
    expected = recorded()[ADVERTISED[api_key][0]][f"v{version}"]
    assert len(answers) == len(expected)
    for number, (got, want) in enumerate(zip(answers, expected, strict=True)):
        assert without_extra_texts(got, want) == want, f"request {number} of the conversation"


def test_what_is_advertised_is_served_at_apaches_versions(raw):
    answer = raw.call(18, 4, {"client_software_name": "tests", "client_software_version": "1.0"})
    advertised = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    here = {} if os.environ.get("ODRADEK_TEST_BOOTSTRAP") else ADVERTISED_HERE
    for key in SCENARIOS:
        assert advertised[key] == here.get(key, ADVERTISED[key][1:]), ADVERTISED[key][0]
    if not os.environ.get("ODRADEK_TEST_BOOTSTRAP"):
        assert advertised.keys() == SCENARIOS.keys(), "what is advertised must be served, and nothing else"
