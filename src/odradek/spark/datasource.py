"""What Spark is given: `format("odradek")` and `format("odradek.segments")`.

Spark imports this in a handful of processes that only look at the class, at the start of every query: what is
not needed there is imported where it is.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from odradek.spark import tables
from odradek.spark.telling import cause_first

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from odradek.spark.options import SinkOptions, SourceOptions


@cause_first
class OdradekSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> "StructType | str":
        given = tables.made_with(self.options)
        if given is None:
            return _ddl(tables.columns_of(self.options))
        from odradek.spark.options import check_table

        check_table(given)
        return tables.table_schema(given)

    def reader(self, schema: "StructType") -> DataSourceReader:
        from odradek.spark.source.readers import Reader

        options = self._source_options(schema, streaming=False)
        return Reader(options, tables.wanted(schema, with_headers=options.include_headers))

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        from odradek.spark.source.readers import RefusedStream, StreamReader

        try:
            options = self._source_options(schema, streaming=True)
            return StreamReader(options, tables.wanted(schema, with_headers=options.include_headers))
        except ValueError as e:
            return RefusedStream(e)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        from odradek.spark.sink.writers import Writer

        if overwrite:
            raise ValueError("a topic cannot be overwritten: use mode('append')")
        return Writer(self._sink_options(schema), schema)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        from odradek.spark.sink.writers import StreamWriter

        return StreamWriter(self._sink_options(schema), schema)

    def _source_options(self, schema: "StructType", *, streaming: bool) -> "SourceOptions":
        from odradek.spark.options import source_options

        return source_options(self.options, streaming=streaming, of_table=tables.kept_in(schema))

    def _sink_options(self, schema: "StructType") -> "SinkOptions":
        from odradek.spark.options import sink_options

        return sink_options(self.options, of_table=tables.kept_in(schema))


@cause_first
class SegmentsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "odradek.segments"

    def schema(self) -> str:
        return _ddl(tables.columns_of(self.options))

    def reader(self, schema: "StructType") -> DataSourceReader:
        from odradek.spark.options import segment_options
        from odradek.spark.segments.source import SegmentReader

        return SegmentReader(segment_options(dict(self.options)))


def _ddl(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
