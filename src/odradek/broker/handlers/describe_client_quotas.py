"""DescribeClientQuotas v0-v1: the answer is empty, because Odradek has no quotas. AlterClientQuotas is not
served.

A filter that Apache refuses gets Apache's error and null entries. Deviation: quotas in the metadata of a
directory from Apache are kept but not shown, because they are not enforced.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import FEW, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_client_quotas import DescribeClientQuotasRequest

_IP = "ip"
_ENTITY_TYPES = (_IP, "user", "client-id")
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


@serves(ApiKey.DESCRIBE_CLIENT_QUOTAS, min_version=0, max_version=1)
def describe_client_quotas(ctx: RequestContext[object], request: "DescribeClientQuotasRequest") -> Paced[Any]:
    types = responses.describe_client_quotas
    try:
        yield from _check_filter(request.components)
    except KafkaError as e:
        return types.DescribeClientQuotasResponse(error_code=e.code, error_message=e.message, entries=None)
    return types.DescribeClientQuotasResponse(error_message="", entries=())


def _check_filter(components: Any) -> Paced[None]:
    seen = set()
    for component in components:
        yield FEW
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in _ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component.match_type, component.match)
        seen.add(kind)
    if _IP in seen and len(seen) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component.",
        )


def _check_match(match_type: int, match: str | None) -> None:
    if match_type == _EXACT:
        if match is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."
            )
    elif match_type not in (_DEFAULT, _SPECIFIED):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}")
    elif match is not None:
        name = "MATCH_TYPE_DEFAULT" if match_type == _DEFAULT else "MATCH_TYPE_SPECIFIED"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Request specified {name}, but also specified a match string."
        )
