"""DescribeUserScramCredentials v0: no user has credentials. AlterUserScramCredentials is not served.

For all users (null or an empty list) the answer is empty, and its message is empty, not null. A named user
gets RESOURCE_NOT_FOUND. A user that occurs twice gets DUPLICATE_RESOURCE, once. Deviation: credentials in the
metadata of a directory from Apache are kept but not shown, because they have no effect.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_user_scram_credentials import DescribeUserScramCredentialsRequest


@serves(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, min_version=0, max_version=0)
def describe_user_scram_credentials(
    ctx: RequestContext[object], request: "DescribeUserScramCredentialsRequest"
) -> Paced[Any]:
    types = responses.describe_user_scram_credentials
    times: Counter[str] = Counter()
    for user in request.users or ():
        times[user.name] += 1
        yield FEW
    results = []
    for name, count in times.items():
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {name}"
        if count > 1:
            code = ErrorCode.DUPLICATE_RESOURCE
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        results.append(
            types.DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message)
        )
        yield STEP
    return types.DescribeUserScramCredentialsResponse(error_message="", results=results)
