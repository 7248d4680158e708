"""ExpireDelegationToken v1-v2: refused, as in Apache on a listener without authentication."""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.security import NO_TIME
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.expire_delegation_token import ExpireDelegationTokenRequest


@serves(ApiKey.EXPIRE_DELEGATION_TOKEN, min_version=1, max_version=2)
def expire_delegation_token(
    ctx: RequestContext[object], request: "ExpireDelegationTokenRequest"
) -> Reply[Any]:
    return Reply(
        responses.expire_delegation_token.ExpireDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp=NO_TIME
        )
    )
