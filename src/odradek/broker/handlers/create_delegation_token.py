"""CreateDelegationToken v1-v3: refused, as in Apache on a listener without authentication.

DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, with the requested owner and no times. Without a name the owner is the
client, User:ANONYMOUS.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.security import NO_TIME
from odradek.core.errors import ErrorCode
from odradek.core.principals import ANONYMOUS_NAME, ANONYMOUS_TYPE
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.create_delegation_token import CreateDelegationTokenRequest


@serves(ApiKey.CREATE_DELEGATION_TOKEN, min_version=1, max_version=3)
def create_delegation_token(
    ctx: RequestContext[object], request: "CreateDelegationTokenRequest"
) -> Reply[Any]:
    owner = (ANONYMOUS_TYPE, ANONYMOUS_NAME)
    if request.owner_principal_name:
        owner = (request.owner_principal_type or "", request.owner_principal_name)
    return Reply(
        responses.create_delegation_token.CreateDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            principal_type=owner[0],
            principal_name=owner[1],
            token_requester_principal_type=ANONYMOUS_TYPE,
            token_requester_principal_name=ANONYMOUS_NAME,
            issue_timestamp=NO_TIME,
            expiry_timestamp=NO_TIME,
            max_timestamp=NO_TIME,
            token_id="",
            hmac=b"",
        )
    )
