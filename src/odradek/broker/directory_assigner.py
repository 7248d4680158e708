"""Reports the directories of this node's replicas to the controller (AssignReplicasToDirs)."""

import asyncio
import logging
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.log.manager import LogManager
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.directories import directory_of
from odradek.runtime.slices import STEP, Paced
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

if TYPE_CHECKING:
    from odradek.metadata.image import PartitionRegistration, TopicImage

_log = logging.getLogger(__name__)

_RETRY_S = 0.5
_TOLD_AT_ONCE = 100


class DirectoryAssigner:
    """Compares the metadata with the places of the logs. `run` reports differences, with retries."""

    def __init__(self, broker_id: int, logs: LogManager) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._untold: dict[tuple[UUID, int], UUID] = {}
        self._news = asyncio.Event()

    def look_at(self, partitions: "Iterable[tuple[TopicImage, int, PartitionRegistration]]") -> Paced[None]:
        """Find the replicas whose directory in the metadata is missing or wrong."""
        for topic, index, registration in partitions:
            yield STEP
            if self._broker_id in registration.replicas and registration.directories:
                directory_id = self._logs.directory_id(TopicPartition(topic.name, index))
                if directory_id is None or directory_id == directory_of(registration, self._broker_id):
                    self._untold.pop((topic.id, index), None)
                else:
                    self._untold[topic.id, index] = directory_id
                    self._news.set()

    async def run(self, channel: ControllerChannel, broker_epoch: int) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._tell(channel, broker_epoch)
            except KafkaError as e:
                _log.warning("Cannot report log directories to the controller, retrying: %s", e)
                await asyncio.sleep(_RETRY_S)
                self._news.set()

    async def _tell(self, channel: ControllerChannel, broker_epoch: int) -> None:
        told = dict(islice(self._untold.items(), _TOLD_AT_ONCE))
        if not told:
            return
        types = request_types(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
        grouped: dict[UUID, dict[UUID, list[Any]]] = {}
        for (topic_id, index), directory_id in told.items():
            partitions = grouped.setdefault(directory_id, {}).setdefault(topic_id, [])
            partitions.append(types.PartitionData(partition_index=index))
        answer = await channel.call(
            ApiKey.ASSIGN_REPLICAS_TO_DIRS,
            types.AssignReplicasToDirsRequest(
                broker_id=self._broker_id,
                broker_epoch=broker_epoch,
                directories=[
                    types.DirectoryData(
                        id_=directory_id,
                        topics=[types.TopicData(topic_id=t, partitions=p) for t, p in topics.items()],
                    )
                    for directory_id, topics in grouped.items()
                ],
            ),
        )
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        for key, directory_id in told.items():
            if self._untold.get(key) == directory_id:
                del self._untold[key]
        if self._untold:
            self._news.set()
