"""Dispatches a request frame to its handler, and encodes the reply.

A handler is in `broker/handlers/<api name>.py`, registers itself with `@serves`, and is imported at the first
request of its API. Handlers of controller listeners are in `broker/controller_handlers/` (see apis.py).
Handlers get requests and make responses in the form of the newest version (wire/messages.py); this file
handles versions. A handler gets the services that its module names in a protocol `Needs` (services.py).
"""

import importlib
import inspect
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from odradek.broker.apis import BROKER_APIS, CONTROLLER_APIS, SHARED, ApiTable, Versions
from odradek.broker.refusals import refusal
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.core.principals import Principal, Requester, packed_address
from odradek.core.types import Buffer
from odradek.runtime.reply import Reply, start
from odradek.runtime.slices import Paced, at_once
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import RequestHeader, response_header
from odradek.wire.limits import LongRequest
from odradek.wire.messages import (
    request_decoder,
    response_encoder,
    response_types,
    sliced_request_decoder,
    sliced_response_encoder,
)

if TYPE_CHECKING:
    from odradek.broker.controller_services import ControllerServices
    from odradek.broker.network.connection import Connection, Place
    from odradek.broker.services import Services

_log = logging.getLogger(__name__)

S_co = TypeVar("S_co", covariant=True)
Handler = Callable[["RequestContext[Services]", Any], Reply[Any]]
LongHandler = Callable[["RequestContext[Services]", Any], Paced[Any] | Coroutine[Any, Any, Any]]
ControllerHandler = Callable[
    ["RequestContext[ControllerServices]", Any], Reply[Any] | Paced[Any] | Coroutine[Any, Any, Any]
]
RawHandler = Callable[["Services", "Connection", RequestHeader, memoryview, int], None]
MAX_ENTRIES = 500_000
"""The maximum entries of one request, including topics and partitions. Each takes some hundred bytes of
memory."""

H = TypeVar("H", bound="Handler | LongHandler")
C = TypeVar("C", bound="ControllerHandler")


class RequestContext(Generic[S_co]):
    """The client of a request, and the services that the handler's module needs."""

    __slots__ = ("api_version", "client_id", "connection", "place", "services")

    def __init__(
        self,
        services: S_co,
        connection: "Connection",
        api_version: int,
        client_id: str | None,
        place: "Place | None" = None,
    ) -> None:
        """`place` is set for a long request, whose handler may reply to the connection itself."""
        self.place = place
        self.services = services
        self.connection = connection
        self.api_version = api_version
        self.client_id = client_id

    @property
    def client_host(self) -> str:
        """The client's address in Kafka's form: `/127.0.0.1`."""
        return f"/{self.connection.peer[0]}"

    @property
    def requester(self) -> Requester:
        """For whom the controller is asked."""
        return Requester(Principal(), self.client_id, packed_address(self.connection.peer[0]))

    @property
    def listener(self) -> str:
        return self.connection.listener


def serves(api_key: ApiKey, *, min_version: int, max_version: int) -> Callable[[H], H]:
    """Register the handler of an API. Its versions must be those of `apis.SERVED`.

    A handler returns a Reply, or it is a generator of paced work, or a coroutine.
    """
    _check_versions(BROKER_APIS, api_key, min_version, max_version)

    def register(handler: H) -> H:
        _register(BROKER_APIS, api_key, handler)
        if api_key in SHARED:
            _register(CONTROLLER_APIS, api_key, handler)
        return handler

    return register


def serves_controller(api_key: ApiKey, *, min_version: int, max_version: int) -> Callable[[C], C]:
    """The same for a handler of controller listeners, and `apis.SERVED_BY_CONTROLLER`."""
    _check_versions(CONTROLLER_APIS, api_key, min_version, max_version)

    def register(handler: C) -> C:
        _register(CONTROLLER_APIS, api_key, handler)
        return handler

    return register


def _check_versions(table: ApiTable, api_key: ApiKey, min_version: int, max_version: int) -> None:
    promised = table.served[api_key]
    assert promised == Versions(min_version, max_version), f"{api_key.name} disagrees with {promised}"


def _register(table: ApiTable, api_key: ApiKey, handler: Callable[..., Any]) -> None:
    adapted = table.handlers[api_key] = _adapted(handler, api_key.name)
    if adapted is handler:
        table.waiting.add(api_key)


def _sliced(handler: Callable[["RequestContext[Services]", Any], Paced[Any]]) -> Handler:
    def begin(context: "RequestContext[Services]", request: Any) -> Reply[Any]:
        return context.services.slices.run(handler(context, request))

    return begin


def _started(handler: Callable[..., Any], name: str) -> Handler:
    def begin(context: "RequestContext[Services]", request: Any) -> Reply[Any]:
        return start(handler(context, request), context.connection.spawn, name)

    return begin


def serves_raw(api_key: ApiKey, *, min_version: int, max_version: int) -> Callable[[RawHandler], RawHandler]:
    """Register a handler that reads its request from the frame and replies to the connection itself."""
    _check_versions(BROKER_APIS, api_key, min_version, max_version)

    def register(handler: RawHandler) -> RawHandler:
        BROKER_APIS.raw_handlers[api_key] = handler
        return handler

    return register


def serves_long(api_key: ApiKey) -> Callable[[H], H]:
    """Register the handler of long requests for an API with a raw handler. Its requests are decoded here.

    It is in `broker/handlers/<api name>_many.py`. It returns None if it replies itself.
    """

    def register(handler: H) -> H:
        BROKER_APIS.handlers[api_key] = _adapted(handler, api_key.name)
        return handler

    return register


def _adapted(handler: Callable[..., Any], name: str) -> Handler:
    if inspect.isgeneratorfunction(handler):
        return _sliced(handler)
    if inspect.iscoroutinefunction(handler):
        return _started(handler, name)
    return handler


def _load_handler(table: ApiTable, api_key: int, suffix: str = "") -> None:
    importlib.import_module(table.module_of(ApiKey(api_key)) + suffix)


def handler_of(api_key: int, table: ApiTable = BROKER_APIS) -> Handler:
    """The handler of an API for requests that are decoded here."""
    if api_key not in table.handlers:
        _load_handler(table, api_key)
        if api_key not in table.handlers:
            _load_handler(table, api_key, "_many")
    handler: Handler = table.handlers[api_key]
    return handler


def decode(header: RequestHeader, buffer: Buffer, position: int) -> Any:
    """The request in the form of the newest version. Raises ProtocolError."""
    try:
        request, _ = request_decoder(header.api_key, header.api_version)(buffer, position)
    except ProtocolError:
        raise
    except Exception as e:
        name = ApiKey(header.api_key).name
        raise ProtocolError(
            f"cannot parse {name} v{header.api_version} from {header.client_id!r}: {e}"
        ) from e
    return request


def encode(header: RequestHeader, response: Any) -> bytes:
    """The complete reply frame."""
    head = response_header(header.api_key, header.api_version, header.correlation_id)
    body = response_encoder(header.api_key, header.api_version)(response)
    return (len(head) + len(body)).to_bytes(4, "big") + head + body


def decode_in_slices(header: RequestHeader, buffer: Buffer, position: int) -> Paced[Any]:
    """`decode` in slices, for a request that may be long. The number of entries is limited, to limit
    memory."""
    decoding = sliced_request_decoder(header.api_key, header.api_version)(buffer, position)
    entries = 0
    while True:
        try:
            calls = decoding.send(None)
        except StopIteration as done:
            return done.value[0]
        entries += 1
        if entries > MAX_ENTRIES:
            name = ApiKey(header.api_key).name
            raise ProtocolError(f"{name} of client {header.client_id!r} has more than {MAX_ENTRIES} entries")
        yield calls


def encode_in_slices(header: RequestHeader, response: Any) -> Paced[list[bytes]]:
    """The reply frame in pieces, for an answer that may be long."""
    head = response_header(header.api_key, header.api_version, header.correlation_id)
    body = yield from sliced_response_encoder(header.api_key, header.api_version)(response)
    size = len(head) + sum(map(len, body))
    return [size.to_bytes(4, "big") + head, *filter(None, body)]


def dispatch(
    services: "Services", connection: "Connection", header: RequestHeader, frame: memoryview, position: int
) -> None:
    """Run the handler, and pass its reply to the connection now or when it is ready."""
    api_key, version = header.api_key, header.api_version
    table = services.apis
    if not table.serves(api_key, version):
        if api_key == ApiKey.API_VERSIONS:
            connection.reply(header, _unsupported_api_versions(header))
            return
        raise ProtocolError(f"unsupported request from client {header.client_id!r}: api {api_key} v{version}")
    planted = services.faults.take(api_key) if services.faults.active and api_key != ApiKey.METADATA else None
    if planted is not None:
        request = decode(header, frame, position)
        connection.reply(header, encode(header, at_once(refusal(api_key, version, request, planted))))
        return
    if api_key not in table.handlers and api_key not in table.raw_handlers:
        _load_handler(table, api_key)
    raw = table.raw_handlers.get(api_key)
    if raw is not None:
        try:
            raw(services, connection, header, frame, position)
        except LongRequest:
            connection.answer_in_slices(header, frame, position)
        return
    if len(frame) > services.slices.short_bytes:
        connection.answer_in_slices(header, frame, position)
        return
    request = decode(header, frame, position)
    reply = handle(services, connection, header, request)
    if reply.is_ready:
        if reply.error is None:
            connection.reply(header, encode(header, reply.value))
        else:
            connection.reply(header, encode(header, at_once(refusal_to(header, request, reply.error))))
    else:
        place = connection.reserve(header)
        reply.when_ready(partial(_finish, services, connection, place, request))


def handle(
    services: "Services",
    connection: "Connection",
    header: RequestHeader,
    request: Any,
    place: "Place | None" = None,
) -> Reply[Any]:
    """The reply of an API's handler to a request."""
    try:
        context = RequestContext(services, connection, header.api_version, header.client_id, place)
        table = services.apis
        handler: Handler = table.handlers.get(header.api_key) or handler_of(header.api_key, table)
        return handler(context, request)
    except Exception as e:
        return Reply.failed(e)


def waits_for_others(services: "Services", api_key: int) -> bool:
    """Whether an answer may wait for requests of other clients."""
    return api_key in services.apis.waiting


def _finish(
    services: "Services", connection: "Connection", place: "Place", request: Any, reply: Reply[Any]
) -> None:
    """Encode an answer that was not ready at once. It may be long."""

    def steps() -> Paced[list[bytes]]:
        response = reply.value
        if reply.error is not None:
            response = yield from refusal_to(place.header, request, reply.error)
        return (yield from encode_in_slices(place.header, response))

    services.slices.run(steps()).when_ready(partial(_fulfil, connection, place))


def _fulfil(connection: "Connection", place: "Place", frame: Reply[list[bytes]]) -> None:
    if frame.error is None:
        connection.fulfil(place, *frame.value)
    elif isinstance(frame.error, ProtocolError):
        connection.refuse(frame.error)
    else:
        name = ApiKey(place.header.api_key).name
        _log.error("Error while answering %s v%d", name, place.header.api_version, exc_info=frame.error)
        connection.close("internal error")


def refusal_to(header: RequestHeader, request: Any, error: Exception) -> Paced[Any]:
    """The error answer. Raises ProtocolError if the connection must be closed instead."""
    api_key, version = header.api_key, header.api_version
    if isinstance(error, KafkaError):
        return (yield from refusal(api_key, version, request, error.code, error.message))
    if isinstance(error, ProtocolError):
        raise error
    _log.error("Error while handling %s v%d", ApiKey(api_key).name, version, exc_info=error)
    return (yield from refusal(api_key, version, request, ErrorCode.UNKNOWN_SERVER_ERROR))


def _unsupported_api_versions(header: RequestHeader) -> bytes:
    """KIP-511: a newer client gets our versions in a v0 answer."""
    types = response_types(ApiKey.API_VERSIONS)
    versions = BROKER_APIS.served[ApiKey.API_VERSIONS]
    row = types.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=versions.min, max_version=versions.max)
    response = types.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
    return encode(header._replace(api_version=0), response)
