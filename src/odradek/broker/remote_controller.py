"""Requests to the active controller on another node: directly, or in an Envelope on behalf of a client.

Which node that is, and what to do when it is another by now, is metadata/channel.py's. Heartbeats have a
connection of their own: answers on a connection come in order, and those of others wait for commits.
"""

from collections.abc import Callable
from typing import Any, Final

from odradek.broker.principals import write_principal
from odradek.client.broker_connections import BrokerConnections, Endpoint
from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.core.principals import Requester
from odradek.runtime.api import Runtime
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request, parse_response_header
from odradek.wire.messages import response_decoder

_LENGTH_BYTES: Final = 4
_LIVES: Final = frozenset((ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT))


class RemoteControllers:
    """Connections to the controllers of other nodes, made when they are needed.

    `endpoint_of` gives host and port of a controller, or None where nobody knows them yet.
    """

    def __init__(
        self, runtime: Runtime, node_id: int, timeout_ms: int, endpoint_of: Callable[[int], Endpoint | None]
    ) -> None:
        client_id = f"broker-{node_id}-to-controller"
        self._lives = BrokerConnections(runtime, client_id, timeout_ms, endpoint_of)
        self._others = BrokerConnections(runtime, client_id, timeout_ms, endpoint_of)

    async def call(
        self, controller_id: int, api_key: ApiKey, request: Any, requester: Requester | None = None
    ) -> Any:
        """The answer. KafkaError: NOT_CONTROLLER where that node cannot be reached, or is not the active one.

        REQUEST_TIMED_OUT where the answer did not come: whether it was decided is not known.
        """
        connections = self._lives if api_key in _LIVES else self._others
        try:
            connection = await connections.get(controller_id)
        except KafkaError as e:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, e.message) from e
        try:
            if requester is None:
                return await connection.send(api_key, request)
            return await self._forward(connection, api_key, request, requester)
        except TimeoutError as e:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"controller {controller_id}: {e}") from e
        except (OSError, ProtocolError) as e:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"controller {controller_id}: {e}") from e

    async def _forward(
        self, connection: BrokerConnection, api_key: ApiKey, request: Any, requester: Requester
    ) -> Any:
        version = connection.choose_version(api_key)
        frame = encode_request(api_key, version, 0, requester.client_id, request)
        envelope = requests.envelope.EnvelopeRequest(
            request_data=bytes(frame)[_LENGTH_BYTES:],
            request_principal=write_principal(requester.principal),
            client_host_address=requester.host,
        )
        response = await connection.send(ApiKey.ENVELOPE, envelope)
        code = ErrorCode(response.error_code)
        if code is not ErrorCode.NONE:
            raise KafkaError(code, f"the controller refused to take {api_key.name} from this broker")
        data = memoryview(response.response_data)
        _, position = parse_response_header(data, 0, api_key, version)
        return response_decoder(api_key, version)(data, position)[0]

    def close(self) -> None:
        self._lives.close()
        self._others.close()
