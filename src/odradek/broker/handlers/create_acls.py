"""CreateAcls v1-v3: each ACL gets SECURITY_DISABLED, as in Apache without an authorizer.

An unknown element (0) in any ACL closes the connection, as in Apache.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.security import NO_AUTHORIZER, check_acl
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.create_acls import CreateAclsRequest


@serves(ApiKey.CREATE_ACLS, min_version=1, max_version=3)
def create_acls(ctx: RequestContext[object], request: "CreateAclsRequest") -> Paced[Any]:
    types = responses.create_acls
    results = []
    for creation in request.creations:
        check_acl(creation)
        results.append(
            types.AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        )
        yield STEP
    return types.CreateAclsResponse(results=results)
