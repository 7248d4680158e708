"""DescribeAcls v1-v3: refused, as Apache refuses it without an authorizer. A node here never has one.

SECURITY_DISABLED without resources. An unknown element (0) in the filter closes the connection, as there.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.security import NO_AUTHORIZER_ON_BROKER, check_acl_filter
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.DESCRIBE_ACLS, min_version=1, max_version=3)
def describe_acls(ctx: RequestContext[object], request: Any) -> Reply[Any]:
    check_acl_filter(request)
    return Reply(
        response_types(ApiKey.DESCRIBE_ACLS).DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_ON_BROKER
        )
    )
