"""What Spark calls to read log directories: the plan on the driver, files in the tasks."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from odradek.client.fetching import READ_COMMITTED
from odradek.runtime.real import RealDisk
from odradek.spark.options import SegmentOptions
from odradek.spark.quick import SentToTasks
from odradek.spark.segments.directory import SegmentPart, pack, plan
from odradek.spark.segments.reading import read_part
from odradek.spark.telling import cause_first


class SegmentTask(InputPartition):
    def __init__(self, parts: list[SegmentPart]) -> None:
        super().__init__(None)
        self.parts = parts


@cause_first
class SegmentReader(SentToTasks, DataSourceReader):
    def __init__(self, options: SegmentOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return [SegmentTask(parts) for parts in pack(plan(RealDisk(), self._options))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SegmentTask):
            return  # Spark's own, where there is nothing to read
        is_committed, with_headers = self._options.isolation == READ_COMMITTED, self._options.include_headers
        for part in partition.parts:
            yield from read_part(RealDisk(), part, is_committed=is_committed, with_headers=with_headers)
