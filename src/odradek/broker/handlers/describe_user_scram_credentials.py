"""DescribeUserScramCredentials v0: nobody has any. AlterUserScramCredentials is not served.

All users (null or an empty list): an empty answer whose message is empty, not null. A user that is named
gets RESOURCE_NOT_FOUND, one that is named again DUPLICATE_RESOURCE, once. Deviation: credentials that an
opened directory holds are kept, not shown: they protect nothing here.
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
