"""UnregisterBroker v0: the controller removes a broker's registration.

BROKER_ID_NOT_REGISTERED for an unknown broker. After a success the message is empty, not null. Deviation:
INVALID_REQUEST for a broker that is alive. Apache removes it, and it is not in the cluster until its restart.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.unregister_broker import UnregisterBrokerRequest


class Needs(Protocol):
    controller: ControllerChannel


@serves(ApiKey.UNREGISTER_BROKER, min_version=0, max_version=0)
async def unregister_broker(ctx: RequestContext[Needs], request: "UnregisterBrokerRequest") -> Any:
    return await ctx.services.controller.call(ApiKey.UNREGISTER_BROKER, request, ctx.requester)
