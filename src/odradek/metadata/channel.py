"""ControllerChannel: sends requests to the active controller, on this node or over the wire."""

from typing import Any, Protocol

from odradek.core.principals import Requester
from odradek.wire.api_keys import ApiKey


class ControllerChannel(Protocol):
    async def call(self, api_key: ApiKey, request: Any, requester: Requester | None = None) -> Any:
        """The controller's answer, after its decision is committed.

        `requester` is the client for whom this node asks, None where it asks for itself.

        Requests and answers are those of wire/messages.py. Raises KafkaError if there is no active
        controller, or if its decision could not be made durable.
        """
        ...
