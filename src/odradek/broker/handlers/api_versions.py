"""ApiVersions v0-v4: the APIs of the client's listener, and the cluster's features.

v3 and above have the client's software name and version, with Apache's checks. dispatch.py answers a version
above v4 with a v0 reply (KIP-511).
"""

import re
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.apis import ApiTable
from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.versions import KRAFT_VERSION, SUPPORTED_FEATURES
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.api_versions import ApiVersionsRequest

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class Needs(Protocol):
    apis: ApiTable
    metadata: MetadataPublisher


@serves(ApiKey.API_VERSIONS, min_version=0, max_version=4)
def api_versions(ctx: RequestContext[Needs], request: "ApiVersionsRequest") -> Reply[Any]:
    types = responses.api_versions
    if ctx.api_version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return Reply(types.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
    image = ctx.services.metadata.image
    finalized = {**image.features, KRAFT_VERSION: ctx.services.metadata.kraft_version}
    response = types.ApiVersionsResponse(
        api_keys=[
            types.ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
            for key, versions in ctx.services.apis.served.items()
        ],
        supported_features=[
            # Clients below v4 reject a minimum of 0, so these features are omitted for them, as in Apache.
            types.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or ctx.api_version >= 4
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            types.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized.items()
            if level > 0
        ],
    )
    return Reply(response)
