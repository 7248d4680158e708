"""UnregisterBroker v0: the controller forgets a broker, which leads and holds nothing from then on.

BROKER_ID_NOT_REGISTERED for one that it does not know; the message of a success is empty, not null.
Deviation: INVALID_REQUEST for one that is alive. Apache takes it out of the cluster, and it is in none
until its restart.
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
    return await ctx.services.controller.call(ApiKey.UNREGISTER_BROKER, request)
