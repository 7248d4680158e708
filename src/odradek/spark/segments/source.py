"""What Spark calls to read log directories: the plan on the driver, a file in each task."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from odradek.runtime.real import RealDisk
from odradek.spark.options import READ_COMMITTED, SegmentOptions
from odradek.spark.segments.directory import SegmentPart, plan
from odradek.spark.segments.reading import read_part


class SegmentTask(InputPartition):
    def __init__(self, part: SegmentPart) -> None:
        super().__init__(None)
        self.part = part


class SegmentReader(DataSourceReader):
    def __init__(self, options: SegmentOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return [SegmentTask(part) for part in plan(RealDisk(), self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SegmentTask):
            return iter(())  # Spark's own, where there is nothing to read
        is_committed = self._options.isolation == READ_COMMITTED
        return read_part(
            RealDisk(),
            partition.part,
            is_committed=is_committed,
            with_headers=self._options.include_headers,
        )
