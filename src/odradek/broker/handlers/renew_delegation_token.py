"""RenewDelegationToken v1-v2: refused, as in Apache on a listener without authentication."""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.security import NO_TIME
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.renew_delegation_token import RenewDelegationTokenRequest


@serves(ApiKey.RENEW_DELEGATION_TOKEN, min_version=1, max_version=2)
def renew_delegation_token(ctx: RequestContext[object], request: "RenewDelegationTokenRequest") -> Reply[Any]:
    return Reply(
        responses.renew_delegation_token.RenewDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp=NO_TIME
        )
    )
