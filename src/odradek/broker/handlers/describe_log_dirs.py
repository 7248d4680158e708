"""DescribeLogDirs v1-v5: the partitions in this broker's log directories, and the space on their volumes."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.log.manager import LogManager
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_log_dirs import DescribeLogDirsRequest

_NO_LAG = 0


class Needs(Protocol):
    logs: LogManager


@serves(ApiKey.DESCRIBE_LOG_DIRS, min_version=1, max_version=5)
def describe_log_dirs(ctx: RequestContext[Needs], request: "DescribeLogDirsRequest") -> Paced[Any]:
    types = responses.describe_log_dirs
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = set()
        for topic in request.topics:
            yield STEP
            for index in topic.partitions:
                wanted.add(TopicPartition(topic.topic, index))
                yield FEW
    results = []
    for info in (yield from ctx.services.logs.describe()):
        if info.failure is not None:
            results.append(
                types.DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=info.path)
            )
            continue
        topics: dict[str, list[Any]] = {}
        for tp, size_bytes in info.sizes:
            yield STEP
            if wanted is None or tp in wanted:
                topics.setdefault(tp.topic, []).append(
                    types.DescribeLogDirsPartition(
                        partition_index=tp.partition, partition_size=size_bytes, offset_lag=_NO_LAG
                    )
                )
        rows = []
        for name, partitions in topics.items():
            rows.append(types.DescribeLogDirsTopic(name=name, partitions=partitions))
            yield FEW
        results.append(
            types.DescribeLogDirsResult(
                log_dir=info.path,
                topics=rows,
                total_bytes=info.total_bytes,
                usable_bytes=info.usable_bytes,
            )
        )
    return types.DescribeLogDirsResponse(results=results)
