"""UpdateFeatures v0-v2: changes all features of a request, or none. kraft.version cannot be downgraded.

An upgrade of kraft.version is refused until every voter has told the leader which directory it has.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.update_features import UpdateFeaturesRequest


class Needs(Protocol):
    controller: ControllerChannel


@serves(ApiKey.UPDATE_FEATURES, min_version=0, max_version=2)
async def update_features(ctx: RequestContext[Needs], request: "UpdateFeaturesRequest") -> Any:
    return await ctx.services.controller.call(ApiKey.UPDATE_FEATURES, request, ctx.requester)
