"""The way from a broker to the active controller: the same node now, another one over the wire later."""

from typing import Any, Protocol

from odradek.wire.api_keys import ApiKey


class ControllerChannel(Protocol):
    async def call(self, api_key: ApiKey, request: Any) -> Any:
        """The controller's answer, once what it decided is committed.

        Requests and answers are those of wire/messages.py. Raises KafkaError when there is no controller
        to decide, or when its decision could not be made durable.
        """
        ...
