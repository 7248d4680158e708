"""Creates topics automatically: on first use, and internal topics."""

import asyncio
import logging
from typing import Any

from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.internal_topics import configured_partitions
from odradek.metadata.publisher import MetadataPublisher
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_log = logging.getLogger(__name__)

USE_DEFAULT = -1


class TopicCreation:
    """Creates topics through the controller, one request per topic at a time, and waits until they have
    leaders."""

    __slots__ = ("_config", "_controller", "_in_flight", "_metadata")

    def __init__(
        self, config: NodeConfig, metadata: MetadataPublisher, controller: ControllerChannel
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._controller = controller
        self._in_flight: dict[str, asyncio.Future[ErrorCode]] = {}

    async def ensure(self, name: str) -> None:
        """Make sure that a topic exists. Raises KafkaError."""
        if name in self._metadata.image.topics_by_name:
            return
        code = (await self.auto_create([name])).get(name, ErrorCode.NONE)
        if code is not ErrorCode.NONE:
            raise KafkaError(code, f"cannot create {name}")

    async def auto_create(self, names: list[str]) -> dict[str, ErrorCode]:
        """Create missing topics. Returns errors by name. Other names were created or existed already."""
        mine = [name for name in names if name not in self._in_flight]
        loop = asyncio.get_running_loop()
        for name in mine:
            self._in_flight[name] = loop.create_future()
        waits = [(name, self._in_flight[name]) for name in names]
        if mine:
            await self._create(mine)
        errors: dict[str, ErrorCode] = {}
        for name, future in waits:
            code = await future
            if code is not ErrorCode.NONE:
                errors[name] = code
        return errors

    async def _create(self, names: list[str]) -> None:
        codes = dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            types = request_types(ApiKey.CREATE_TOPICS)
            request = types.CreateTopicsRequest(
                topics=[self._creatable(types, name) for name in names],
                timeout=self._config.int("request.timeout.ms"),
                validate_only=False,
            )
            response = await self._controller.call(ApiKey.CREATE_TOPICS, request)
            for result in response.topics:
                code = ErrorCode(result.error_code)
                if code is ErrorCode.TOPIC_ALREADY_EXISTS:
                    code = ErrorCode.NONE
                elif code is not ErrorCode.NONE:
                    _log.warning("Auto topic creation failed for %r: %s", result.name, code.name)
                codes[result.name] = code
        except KafkaError as e:
            _log.warning("Auto topic creation failed: %s", e)
            codes = dict.fromkeys(names, e.code)
        finally:
            for name in names:
                self._in_flight.pop(name).set_result(codes[name])

    def _creatable(self, types: Any, name: str) -> Any:
        config = self._config
        partitions, factor, settings = USE_DEFAULT, USE_DEFAULT, {}
        if name == GROUP_METADATA_TOPIC:
            partitions = configured_partitions(config, name)
            factor = config.int("offsets.topic.replication.factor")
            settings = {
                "cleanup.policy": "compact",
                "segment.bytes": config.string("offsets.topic.segment.bytes"),
                "compression.type": "producer",
            }
        elif name == TRANSACTION_STATE_TOPIC:
            partitions = configured_partitions(config, name)
            factor = config.int("transaction.state.log.replication.factor")
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": config.string("transaction.state.log.min.isr"),
                "segment.bytes": config.string("transaction.state.log.segment.bytes"),
            }
        return types.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[types.CreatableTopicConfig(name=k, value=v) for k, v in settings.items()],
        )
