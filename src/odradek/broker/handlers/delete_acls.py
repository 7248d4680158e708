"""DeleteAcls v1-v3: each filter gets SECURITY_DISABLED, as in Apache without an authorizer.

An unknown element (0) in any filter closes the connection, as in Apache.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.security import NO_AUTHORIZER, check_acl_filter
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.delete_acls import DeleteAclsRequest


@serves(ApiKey.DELETE_ACLS, min_version=1, max_version=3)
def delete_acls(ctx: RequestContext[object], request: "DeleteAclsRequest") -> Paced[Any]:
    types = responses.delete_acls
    results = []
    for asked in request.filters:
        check_acl_filter(asked)
        results.append(
            types.DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        )
        yield STEP
    return types.DeleteAclsResponse(filter_results=results)
