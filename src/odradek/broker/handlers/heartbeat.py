"""Heartbeat v0-v4: a member stays alive, and learns whether it must rejoin. No deviation from Apache."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import Heartbeat
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.heartbeat import HeartbeatRequest


class Needs(Protocol):
    groups: GroupCoordinator


@serves(ApiKey.HEARTBEAT, min_version=0, max_version=4)
def heartbeat(ctx: RequestContext[Needs], request: "HeartbeatRequest") -> Reply[Any]:
    return ctx.services.groups.heartbeat(
        Heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
    )
