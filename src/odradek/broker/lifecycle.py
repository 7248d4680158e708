"""BrokerLifecycle: the broker's side of its membership: registration, unfencing, heartbeats, controlled
shutdown.

controller/brokers.py has the controller's side.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from odradek.core.configs import Listener, NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.managing.log_dir import LogDir
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.image import MetadataImage
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.versions import SUPPORTED_FEATURES
from odradek.runtime.scope import Scope
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_NOBODY_GRANTS = (ErrorCode.NOT_CONTROLLER, ErrorCode.KAFKA_STORAGE_ERROR)
_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


def advertised_listeners(config: NodeConfig, bound: Mapping[str, tuple[str, int]]) -> list[Listener]:
    """The endpoints for clients: as configured, with the real port instead of port 0."""
    return [
        listener if listener.port else listener._replace(port=bound[listener.name][1])
        for listener in config.advertised_listeners
    ]


def previous_broker_epoch(directories: Sequence[LogDir]) -> int:
    """The epoch at which this broker stopped cleanly; -1 if any of its directories was not closed cleanly."""
    epochs = {directory.previous_broker_epoch for directory in directories}
    return epochs.pop() if len(epochs) == 1 else -1


class RegistrationError(Exception):
    """The controller refuses this broker, with the reason."""


class BrokerLifecycle:
    """Call `register`, then `unfence` when the node is ready to serve, and `shut_down` before it stops."""

    def __init__(
        self,
        config: NodeConfig,
        channel: ControllerChannel,
        publisher: MetadataPublisher,
        *,
        cluster_id: str,
        incarnation_id: UUID,
        directory_ids: Sequence[UUID],
        previous_broker_epoch: int = -1,
    ) -> None:
        self._config = config
        self._channel = channel
        self._publisher = publisher
        self._cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self._directory_ids = tuple(directory_ids)
        self._previous_broker_epoch = previous_broker_epoch
        self._offline_directories: dict[UUID, None] = {}
        self._news = asyncio.Event()
        self._scope = Scope(self._task_failed)
        self._refusal = ""
        self.broker_epoch = -1

    async def register(self, listeners: Sequence[Listener]) -> int:
        """Register with the advertised listeners. Returns the broker epoch. Raises RegistrationError.

        It retries while the controller still counts an earlier incarnation as alive. When it returns, the
        image includes the registration, and so this broker's partitions.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.int("initial.broker.registration.timeout.ms") / 1000
        request = self._registration(listeners)
        told = ""
        while True:
            code, response = await self._ask(ApiKey.BROKER_REGISTRATION, request)
            if code is ErrorCode.NONE:
                self.broker_epoch = response.broker_epoch
                await self._catch_up(deadline - loop.time())
                return self.broker_epoch
            is_duplicate = code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            obstacle = self._first_one() if is_duplicate else self._refusal or code.name
            if is_duplicate and obstacle != told:
                told = obstacle
                _log.warning("Cannot register yet: %s", obstacle)
            if not (code.retriable or is_duplicate) or loop.time() >= deadline:
                raise RegistrationError(
                    f"the controller refused to register broker {request.broker_id}: {obstacle}"
                )
            await asyncio.sleep(_RETRY_SECONDS)

    def _first_one(self) -> str:
        """The broker that has the id of this one, as the metadata knows it. The answer does not name it."""
        node_id = self._config.node_id
        known = self._publisher.image.brokers.get(node_id)
        addresses = ", ".join(f"{e.host}:{e.port}" for e in known.endpoints.values()) if known else ""
        return (
            f"another broker is registered with node.id {node_id}, at {addresses or 'an unknown address'}, "
            "and its session has not ended"
        )

    async def _catch_up(self, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(self._publisher.until(self._shows_registration), max(timeout_s, 0))
        except TimeoutError as e:
            raise RegistrationError(f"the metadata does not show broker epoch {self.broker_epoch}") from e

    def _shows_registration(self, image: MetadataImage) -> bool:
        broker = image.brokers.get(self._config.node_id)
        return broker is not None and broker.epoch >= self.broker_epoch

    def _registration(self, listeners: Sequence[Listener]) -> Any:
        types = request_types(ApiKey.BROKER_REGISTRATION)
        return types.BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                types.Listener(
                    name=listener.name,
                    host=listener.host,
                    port=listener.port,
                    security_protocol=_SECURITY_PROTOCOLS[listener.security_protocol],
                )
                for listener in listeners
            ],
            features=[
                types.Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            rack=self._config.value("broker.rack"),
            log_dirs=self._directory_ids,
            previous_broker_epoch=self._previous_broker_epoch,
        )

    async def unfence(self) -> None:
        """Wait until the broker is unfenced, then send a heartbeat every broker.heartbeat.interval.ms."""
        while True:
            code, response = await self._heartbeat()
            if code is ErrorCode.STALE_BROKER_EPOCH:
                raise RegistrationError(f"broker epoch {self.broker_epoch} is stale")
            if code is ErrorCode.NONE and not response.is_fenced:
                break
            await asyncio.sleep(_RETRY_SECONDS)
        self._scope.spawn(self._stay_alive(), name="broker-heartbeat")

    def directory_failed(self, directory_id: UUID) -> None:
        """Report a failed directory to the controller at once, and with every further heartbeat."""
        self._offline_directories[directory_id] = None
        self._news.set()

    async def shut_down(self) -> None:
        """Controlled shutdown: leaders move, then the controller allows the stop. Errors do not prevent the
        stop. A controller that is there is waited for; where none is active, the channel soon says so."""
        await self._scope.close()
        if not self._config.bool("controlled.shutdown.enable"):
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.int("broker.session.timeout.ms") / 1000
        asked = 0
        while loop.time() < deadline:
            code, response = await self._heartbeat(want_shut_down=True)
            if code is ErrorCode.NONE and response.should_shut_down:
                return
            if code in _NOBODY_GRANTS or (code is not ErrorCode.NONE and not code.retriable):
                _log.warning("Controlled shutdown was not granted: %s", self._refusal or code.name)
                return
            asked += 1
            if asked > 1:
                await asyncio.sleep(_RETRY_SECONDS)
        _log.warning("Controlled shutdown was not granted in time: the controller will fence this broker")

    async def close(self) -> None:
        """Stop the heartbeats without a controlled shutdown."""
        await self._scope.close()

    async def _stay_alive(self) -> None:
        interval = self._config.int("broker.heartbeat.interval.ms") / 1000
        fenced = False
        while True:
            try:
                await asyncio.wait_for(self._news.wait(), interval)
            except TimeoutError:
                pass
            self._news.clear()
            code, response = await self._heartbeat()
            if code is not ErrorCode.NONE:
                _log.warning("Heartbeat failed: %s", code.name)
            elif response.is_fenced != fenced:
                fenced = response.is_fenced
                _log.warning("The broker has been %s", "fenced" if fenced else "unfenced")

    async def _heartbeat(self, *, want_shut_down: bool = False) -> tuple[ErrorCode, Any]:
        types = request_types(ApiKey.BROKER_HEARTBEAT)
        request = types.BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._publisher.image.offset,
            want_shut_down=want_shut_down,
            offline_log_dirs=tuple(self._offline_directories),
            cordoned_log_dirs=(),
        )
        return await self._ask(ApiKey.BROKER_HEARTBEAT, request)

    async def _ask(self, api_key: ApiKey, request: Any) -> tuple[ErrorCode, Any]:
        self._refusal = ""
        try:
            response = await self._channel.call(api_key, request)
        except KafkaError as e:
            self._refusal = str(e)
            return e.code, None
        return ErrorCode(response.error_code), response

    def _task_failed(self, error: BaseException) -> None:
        _log.error("Heartbeats stopped", exc_info=error)
