"""The APIs that the active controller decides: asked here, answered once what was decided is committed.

A controller that is not the active one answers NOT_CONTROLLER. Config changes of a broker are checked by that
broker before it forwards them (broker/config_admin.py).
"""

from typing import Any, Protocol

from odradek.broker.apis import CONTROLLER_APIS, DECIDED_BY_CONTROLLER
from odradek.broker.dispatch import RequestContext, serves_controller
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey


class Needs(Protocol):
    @property
    def controller(self) -> ControllerChannel: ...


def _register(api_key: ApiKey) -> None:
    async def decided(ctx: RequestContext[Needs], request: Any) -> Any:
        return await ctx.services.controller.call(api_key, request)

    first, last = CONTROLLER_APIS.served[api_key]
    serves_controller(api_key, min_version=first, max_version=last)(decided)


for _api_key in DECIDED_BY_CONTROLLER:
    _register(_api_key)
