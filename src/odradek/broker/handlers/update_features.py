"""UpdateFeatures v0-v2: all features of a request change, or none. kraft.version never goes down."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.wire.api_keys import ApiKey


@serves(ApiKey.UPDATE_FEATURES, min_version=0, max_version=2)
async def update_features(ctx: RequestContext, request: Any) -> Any:
    return await ctx.node.controller.call(ApiKey.UPDATE_FEATURES, request)
