"""AlterReplicaLogDirs v1-v2. Moving replicas between directories is not supported yet.

NONE if a replica is there already. LOG_DIR_NOT_FOUND for a path that is not exactly in log.dirs.
KAFKA_STORAGE_ERROR for an offline directory. UNKNOWN_TOPIC_OR_PARTITION. A partition that occurs twice is
answered once, for the last path. Deviation: INVALID_REQUEST if a replica would have to move.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.log.manager import LogManager
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.alter_replica_log_dirs import AlterReplicaLogDirsRequest


class Needs(Protocol):
    logs: LogManager


@serves(ApiKey.ALTER_REPLICA_LOG_DIRS, min_version=1, max_version=2)
def alter_replica_log_dirs(ctx: RequestContext[Needs], request: "AlterReplicaLogDirsRequest") -> Paced[Any]:
    types = responses.alter_replica_log_dirs
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        yield FEW
        for topic in directory.topics:
            yield FEW
            for index in topic.partitions:
                wanted.setdefault(topic.name, {})[index] = directory.path
                yield FEW
    results = []
    for name, paths in wanted.items():
        partitions = []
        for index, path in paths.items():
            code = _answer(ctx.services.logs, TopicPartition(name, index), path)
            partitions.append(types.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
            yield STEP
        results.append(types.AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions))
        yield STEP
    return types.AlterReplicaLogDirsResponse(results=results)


def _answer(logs: LogManager, tp: TopicPartition, path: str) -> ErrorCode:
    directory = next((d for d in logs.directories if d.path == path), None)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    log = logs.get(tp)
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if log.directory == path else ErrorCode.INVALID_REQUEST
