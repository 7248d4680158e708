"""What Spark is given: `format("odradek")` and `format("odradek.segments")`.

Spark imports this in a handful of processes that only look at the class, at the start of every query: what is
not needed there is imported where it is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset long, "
    "timestamp timestamp, timestampType int"
)
_HEADERS = "headers array<struct<key: string, value: binary>>"


class OdradekSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> str:
        return _schema(self.options)

    def reader(self, schema: "StructType") -> DataSourceReader:
        from odradek.spark.options import source_options
        from odradek.spark.source import Reader

        return Reader(source_options(dict(self.options), streaming=False))

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        from odradek.spark.options import source_options
        from odradek.spark.source import StreamReader

        return StreamReader(source_options(dict(self.options), streaming=True))

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        from odradek.spark.options import sink_options
        from odradek.spark.sink import Writer

        if overwrite:
            raise ValueError("a topic cannot be overwritten: use mode('append')")
        return Writer(sink_options(dict(self.options)), schema)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        from odradek.spark.options import sink_options
        from odradek.spark.sink import StreamWriter

        return StreamWriter(sink_options(dict(self.options)), schema)


class SegmentsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "odradek.segments"

    def schema(self) -> str:
        return _schema(self.options)

    def reader(self, schema: "StructType") -> DataSourceReader:
        from odradek.spark.options import segment_options
        from odradek.spark.segments.source import SegmentReader

        return SegmentReader(segment_options(dict(self.options)))


def _schema(options: Mapping[str, str]) -> str:
    with_headers = options.get("includeHeaders", "").lower() == "true"
    return f"{_COLUMNS}, {_HEADERS}" if with_headers else _COLUMNS
