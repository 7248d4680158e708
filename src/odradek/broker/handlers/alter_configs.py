"""AlterConfigs v0-v2: replaces all configs of a resource with the given ones.

It does not change levels of broker loggers, as in Apache. Deviation: client metrics have no configs.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.config_admin import Needs, alter
from odradek.broker.dispatch import RequestContext, serves
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.alter_configs import AlterConfigsRequest


@serves(ApiKey.ALTER_CONFIGS, min_version=0, max_version=2)
async def alter_configs(ctx: RequestContext[Needs], request: "AlterConfigsRequest") -> Any:
    return await alter(ctx, ApiKey.ALTER_CONFIGS, request)
