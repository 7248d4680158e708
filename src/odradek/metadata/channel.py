"""The way to the active controller, on this node or over the wire to another one."""

from typing import Any, Protocol

from odradek.wire.api_keys import ApiKey


class ControllerChannel(Protocol):
    async def call(self, api_key: ApiKey, request: Any) -> Any:
        """The controller's answer, once what it decided is committed.

        Requests and answers are those of wire/messages.py. Raises KafkaError when there is no controller
        to decide, or when its decision could not be made durable.
        """
        ...
