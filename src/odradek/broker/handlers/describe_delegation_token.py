"""DescribeDelegationToken v1-v3: refused, as Apache refuses it on a listener without authentication.

An empty list of owners is refused as well. Tokens that an opened directory holds are kept, not shown.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.DESCRIBE_DELEGATION_TOKEN, min_version=1, max_version=3)
def describe_delegation_token(ctx: RequestContext[object], request: Any) -> Reply[Any]:
    return Reply(
        response_types(ApiKey.DESCRIBE_DELEGATION_TOKEN).DescribeDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        )
    )
