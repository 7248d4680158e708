"""A controller makes itself known: where it is, what it supports. Every controller does.

The active controller registers itself when it begins; the others ask it to. Which of them is active is the
channel's business, what is written registration.py's.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import MetadataImage
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.versions import SUPPORTED_FEATURES, knows_controllers
from odradek.runtime.scope import Scope
from odradek.runtime.slices import FEW, Paced
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.controller_registration import ControllerRegistrationRequest

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


def is_missing(image: MetadataImage, controller_id: int, incarnation_id: UUID) -> bool:
    """Whether this incarnation has to register: the metadata has a place for it, and not it."""
    if not knows_controllers(image.metadata_version):
        return False
    known = image.controllers.get(controller_id)
    return known is None or known.incarnation_id != incarnation_id


def registration_request(config: NodeConfig, incarnation_id: UUID) -> "ControllerRegistrationRequest":
    types = requests.controller_registration
    return types.ControllerRegistrationRequest(
        controller_id=config.node_id,
        incarnation_id=incarnation_id,
        listeners=[
            types.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=_SECURITY_PROTOCOLS[listener.security_protocol],
            )
            for listener in config.advertised_controller_listeners
        ],
        features=[
            types.Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
            for name, levels in SUPPORTED_FEATURES.items()
        ],
    )


class ControllerRegistrar:
    """Follows the metadata: while this controller is missing in it, the active one is asked."""

    def __init__(
        self,
        config: NodeConfig,
        incarnation_id: UUID,
        channel: ControllerChannel,
        publisher: MetadataPublisher,
    ) -> None:
        self._node_id = config.node_id
        self._incarnation_id = incarnation_id
        self._request = registration_request(config, incarnation_id)
        self._channel = channel
        self._publisher = publisher
        self._asking: asyncio.Task[None] | None = None
        self._scope = Scope(lambda error: _log.error("The controller cannot register", exc_info=error))

    def on_delta(self, delta: MetadataDelta) -> Paced[None]:
        """A subscriber of the publisher's."""
        yield FEW
        if self._is_missing() and (self._asking is None or self._asking.done()):
            self._asking = self._scope.spawn(self._register(), name="register controller")

    async def close(self) -> None:
        await self._scope.close()

    def _is_missing(self) -> bool:
        return is_missing(self._publisher.image, self._node_id, self._incarnation_id)

    async def _register(self) -> None:
        while self._is_missing():
            code = await self._ask()
            if code is ErrorCode.NONE:
                return
            _log.warning(
                "The active controller does not register controller %d: %s", self._node_id, code.name
            )
            await asyncio.sleep(_RETRY_SECONDS)

    async def _ask(self) -> ErrorCode:
        try:
            response: Any = await self._channel.call(ApiKey.CONTROLLER_REGISTRATION, self._request)
        except KafkaError as e:
            return e.code
        return ErrorCode(response.error_code)
