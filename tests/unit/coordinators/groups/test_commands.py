"""Which commands wait behind the others when their group's shard is taken: those about many entries."""

from typing import Any

import pytest

from odradek.coordinators.groups import commands as c
from odradek.core.types import ZERO_UUID


def commit(count: int) -> Any:
    return c.CommitOffsets("g", "", None, -1, [c.OffsetToCommit("t", ZERO_UUID, 0, 5, -1, "")] * count)


def fetch(count: int) -> Any:
    return c.FetchOffsets("g", [c.WantedTopic("t", ZERO_UUID, list(range(count)))], False)


def leave(count: int) -> Any:
    return c.LeaveGroup("g", [c.LeavingMember("m", None)] * count)


def sync(count: int) -> Any:
    return c.SyncGroup(
        group_id="g",
        member_id="m",
        group_instance_id=None,
        generation_id=1,
        protocol_type=None,
        protocol_name=None,
        assignments=[("m", b"")] * count,
    )


def heartbeat(count: int) -> Any:
    return c.ConsumerHeartbeat(
        group_id="g",
        member_id="m",
        member_epoch=1,
        client_id="",
        client_host="",
        subscribed_topic_names=["t"] * count,
    )


@pytest.mark.parametrize("make", [commit, fetch, leave, sync, heartbeat])
def test_a_command_about_few_entries_is_short(make: Any) -> None:
    assert not make(0).is_long
    assert not make(c.FEW).is_long
    assert make(c.FEW + 1).is_long


def test_a_question_for_all_offsets_is_long() -> None:
    assert c.FetchOffsets("g", None, False).is_long
