"""DescribeAcls v1-v3: SECURITY_DISABLED without resources, as in Apache without an authorizer.

An unknown element (0) in the filter closes the connection, as in Apache.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.security import NO_AUTHORIZER_ON_BROKER, check_acl_filter
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_acls import DescribeAclsRequest


@serves(ApiKey.DESCRIBE_ACLS, min_version=1, max_version=3)
def describe_acls(ctx: RequestContext[object], request: "DescribeAclsRequest") -> Reply[Any]:
    check_acl_filter(request)
    return Reply(
        responses.describe_acls.DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_ON_BROKER
        )
    )
