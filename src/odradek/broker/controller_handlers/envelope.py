"""Envelope v0: a broker forwards what a client asked of it, with the client's principal.

The request inside is handled as if it had come to this listener; its answer goes back inside. Whatever is
wrong with it is an error in the answer, and never closes the connection: Apache Kafka sends a request again
and again after that.
"""

from typing import TYPE_CHECKING, Any, Final, Protocol

from odradek.broker.apis import ApiTable
from odradek.broker.dispatch import RequestContext, decode, encode, handler_of, refusal_to, serves_controller
from odradek.broker.principals import read_principal
from odradek.core.errors import ErrorCode, ProtocolError
from odradek.runtime.reply import Reply
from odradek.runtime.slices import Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import RequestHeader, parse_request_header

if TYPE_CHECKING:
    from odradek.wire.requests.envelope import EnvelopeRequest

FORWARDABLE: Final = frozenset(
    (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    )
)
_LENGTH_BYTES = 4


class Needs(Protocol):
    apis: ApiTable
    slices: Slices


@serves_controller(ApiKey.ENVELOPE, min_version=0, max_version=0)
async def envelope(ctx: RequestContext[Needs], request: "EnvelopeRequest") -> Any:
    types = responses.envelope
    try:
        read_principal(request.request_principal)
        header, inner = _opened(ctx.services.apis, request)
    except ProtocolError:
        return types.EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        frame = await _answer(ctx, header, inner)
    except ProtocolError:
        return types.EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    if frame is None:
        return types.EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return types.EnvelopeResponse(response_data=frame[_LENGTH_BYTES:])


def _opened(table: ApiTable, request: "EnvelopeRequest") -> tuple[RequestHeader, Any]:
    data = memoryview(request.request_data)
    header, position = parse_request_header(data)
    if header.api_key not in FORWARDABLE or not table.serves(header.api_key, header.api_version):
        raise ProtocolError(f"api {header.api_key} v{header.api_version} is not one to forward")
    return header, decode(header, data, position)


async def _answer(ctx: RequestContext[Needs], header: RequestHeader, request: Any) -> bytes | None:
    """The frame of the answer; None where only the active controller can give it, and this is another."""
    reply = _handled(ctx, header, request)
    try:
        return encode(header, await reply)
    except Exception as e:
        if getattr(e, "code", None) is ErrorCode.NOT_CONTROLLER:
            return None
        return encode(header, await ctx.services.slices.run(refusal_to(header, request, e)))


def _handled(ctx: RequestContext[Needs], header: RequestHeader, request: Any) -> Reply[Any]:
    inner: RequestContext[Any] = RequestContext(
        ctx.services, ctx.connection, header.api_version, header.client_id, ctx.place
    )
    return handler_of(header.api_key, ctx.services.apis)(inner, request)
