"""IncrementalAlterConfigs v0-v1: sets, deletes, appends to and subtracts from single configs.

SET and DELETE change the levels of this broker's loggers, at once and until the node stops. The names are
those of Odradek's loggers, as in DescribeConfigs. Deviation: client metrics have no configs.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.config_admin import Needs, alter
from odradek.broker.dispatch import RequestContext, serves
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.incremental_alter_configs import IncrementalAlterConfigsRequest


@serves(ApiKey.INCREMENTAL_ALTER_CONFIGS, min_version=0, max_version=1)
async def incremental_alter_configs(
    ctx: RequestContext[Needs], request: "IncrementalAlterConfigsRequest"
) -> Any:
    return await alter(ctx, ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
