"""DescribeDelegationToken v1-v3: refused, as in Apache on a listener without authentication.

An empty list of owners is refused too. Tokens in the metadata of a directory from Apache are kept but not
shown.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_delegation_token import DescribeDelegationTokenRequest


@serves(ApiKey.DESCRIBE_DELEGATION_TOKEN, min_version=1, max_version=3)
def describe_delegation_token(
    ctx: RequestContext[object], request: "DescribeDelegationTokenRequest"
) -> Reply[Any]:
    return Reply(
        responses.describe_delegation_token.DescribeDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        )
    )
