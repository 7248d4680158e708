"""The APIs that the active controller decides: asked here, answered once what was decided is committed.

A controller that is not the active one answers NOT_CONTROLLER. Config changes of a broker are checked by that
broker before it forwards them (broker/config_admin.py).
"""

from functools import partial
from typing import Any, Final, Protocol

from odradek.broker.apis import CONTROLLER_APIS, DECIDED_BY_CONTROLLER
from odradek.broker.dispatch import RequestContext, serves_controller
from odradek.controller.quorum import QuorumController
from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey

_LIVES: Final = frozenset((ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT))


class Needs(Protocol):
    @property
    def controller(self) -> QuorumController: ...


def _watch(ctx: RequestContext[Needs], broker_id: int, broker_epoch: int) -> None:
    """This connection is that of a broker which lives: its end is news to the controller."""
    controller, connection = ctx.services.controller, ctx.connection
    controller.broker_proved(broker_id, broker_epoch, connection.number)
    if connection.closed:
        controller.connection_broke(connection.number)
    else:
        connection.on_close[_watch] = partial(controller.connection_broke, connection.number)


def _register(api_key: ApiKey) -> None:
    async def decided(ctx: RequestContext[Needs], request: Any) -> Any:
        response = await ctx.services.controller.call(api_key, request)
        if api_key in _LIVES and response.error_code == ErrorCode.NONE:
            is_heartbeat = api_key is ApiKey.BROKER_HEARTBEAT
            epoch = request.broker_epoch if is_heartbeat else response.broker_epoch
            _watch(ctx, request.broker_id, epoch)
        return response

    first, last = CONTROLLER_APIS.served[api_key]
    serves_controller(api_key, min_version=first, max_version=last)(decided)


for _api_key in DECIDED_BY_CONTROLLER:
    _register(_api_key)
