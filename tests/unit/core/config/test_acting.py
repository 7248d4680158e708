"""The list of acting keys is exactly what the code reads: in its source and in a running node."""

import ast
import asyncio
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import odradek
from odradek.broker.node import Node
from odradek.coordinators.groups.config import GroupConfig
from odradek.coordinators.transactions.config import TransactionConfig
from odradek.core.config.acting import (
    ACTING_BROKER_KEYS,
    ACTING_GROUP_KEYS,
    ACTING_LISTENER_KEYS,
    ACTING_TOPIC_KEYS,
)
from odradek.core.config.keys import LISTENER_PREFIX
from odradek.core.config.values import Value
from odradek.core.configs import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS, NodeConfig, TopicConfig, node_defaults
from odradek.log.cleaning.settings import CleanerSettings
from odradek.runtime.real import RealRuntime

SOURCE = Path(odradek.__file__).parent
# Files that define, check or report keys, and those that know a client's keys or set a node's.
NOT_READERS = re.compile(
    r"core/config/(acting|rules|protection|inert|dynamic|describe|group|values)\.py|(cli|sim|spark|testing)/"
)
TEXTS = {
    name: path.read_text()
    for path in sorted(SOURCE.rglob("*.py"))
    if not NOT_READERS.match(name := str(path.relative_to(SOURCE)))
}
GETTERS = {"int", "string", "list", "bool", "float", "value", "get", "_int", "topic_value"}
# Which listener is the brokers' own is checked at every start; a node alone has no other use for it.
READ_BY_RULES = {"broker.id", "inter.broker.listener.name", "security.inter.broker.protocol"}
# A topic may only ask for tiered storage where the node has it: a check, nothing is ever tiered.
ONLY_CHECKED = {"remote.log.storage.system.enable", "remote.storage.enable"}
# The level of a codec is read through TopicConfig.compression_level, a policy through its properties.
THROUGH = {f"compression.{codec}.level": "compression_level" for codec in ("gzip", "lz4", "zstd")} | {
    "cleanup.policy": "is_compacted|deletes_old_records"
}
# They act when their topic key does, and are reported with every new topic.
TOPIC_DEFAULTS = {synonym for key in TOPIC_KEYS.values() for synonym in key.synonyms}


def asked_for() -> Iterator[str]:
    """Every literal that is the argument of something that reads a setting."""
    for text in TEXTS.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", None))
                if called in GETTERS:
                    yield from (str(a.value) for a in node.args if isinstance(a, ast.Constant))


def attribute_is_read(name: str, but_in: str) -> bool:
    pattern = re.compile(rf"\.(?:{name})\b(?!\s*=[^=])")
    return any(pattern.search(text) for path, text in TEXTS.items() if not path.startswith(but_in))


READ = set(asked_for()) - ONLY_CHECKED


def test_the_acting_broker_keys_are_those_that_are_read() -> None:
    assert (READ & set(BROKER_KEYS) | READ_BY_RULES) - TOPIC_DEFAULTS == ACTING_BROKER_KEYS - TOPIC_DEFAULTS


def test_the_acting_topic_keys_are_those_that_are_read_beyond_the_configuration_itself() -> None:
    fields = {field.name.replace("_", ".") for field in dataclasses.fields(TopicConfig)}
    read = {name for name in fields if attribute_is_read(THROUGH.get(name, name.replace(".", "_")), "core/")}
    assert read | (READ & set(TOPIC_KEYS)) == ACTING_TOPIC_KEYS


def test_the_acting_group_keys_are_those_that_are_read() -> None:
    assert READ & set(GROUP_KEYS) == ACTING_GROUP_KEYS


@pytest.mark.parametrize("settings", [GroupConfig, TransactionConfig, CleanerSettings])
def test_what_is_read_into_settings_is_used(settings: type) -> None:
    fields = getattr(settings, "_fields", None) or [f.name for f in dataclasses.fields(settings)]
    assert [name for name in fields if not attribute_is_read(name, "nowhere")] == []


class Recording(NodeConfig):
    """Remembers which settings were asked for since it was made and checked."""

    __slots__ = ("read",)

    def __init__(self, raw: dict[str, str]) -> None:
        self.read: set[str] = set()
        super().__init__(raw)
        self.read.clear()

    def value(self, name: str) -> Value:
        self.read.add(name)
        return super().value(name)


def test_a_running_node_reads_acting_keys_only(tmp_path: Path) -> None:
    config = Recording(node_defaults(str(tmp_path / "data"), port=0))

    async def scenario() -> None:
        node = Node(config, RealRuntime())
        await node.start()
        _, client = await asyncio.open_connection(*node.address)
        await node.internal_topics.ensure("__transaction_state")
        await node.internal_topics.ensure("t")
        client.close()
        await node.stop()

    asyncio.run(scenario())
    assert len(config.read) > 90
    of_listeners = {name for name in config.read if name.startswith(LISTENER_PREFIX)}
    assert {name.split(".", 3)[3] for name in of_listeners} == ACTING_LISTENER_KEYS
    read = config.read - of_listeners
    assert {name for name in read if not BROKER_KEYS[name].acts} - TOPIC_DEFAULTS == set()


def test_a_broker_default_acts_when_its_topic_key_does() -> None:
    assert BROKER_KEYS["log.retention.hours"].acts
    assert BROKER_KEYS["log.cleaner.min.cleanable.ratio"].acts
    assert not BROKER_KEYS["log.local.retention.ms"].acts
