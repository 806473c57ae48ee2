"""The Spark data source "workbench.log": the rows or the rejected lines of log files.

::

    workbench.pipelines.spark()                                                 a session with this source
    spark.read.format("workbench.log").option("format", "mercator").load("logs/*.csv")
    spark.read.format("workbench.log").option("format", my_format.to_json()).option("table", "rejected").load("my.log")

Options
    path      a path, a URL of an object, or a pattern of either; ``load`` also takes a list of these
    format    the name of a known format, or a `LogFormat` as JSON (`LogFormat.to_json`)
    table     "rows" (default) or "rejected"; `workbench.pipelines.logs.reading.Log` lists the columns of both
    range_MB  size of the byte range that a task reads, by default 32

Paths are relative to the working directory of Spark's driver, or of the server of Spark Connect. That process reads
only the beginning of each file, and raises DataError as `read_log` does; all other bytes are read by tasks.

A data source cannot start a job that counts lines. So a task that rejects a line counts the line ends before its own
range. A file is divided among at most `MOST_COUNTING` (16) tasks, because a task counts half of the file on average:
if each task rejects a line, the 16 tasks together read the file eight times in addition, without parsing it. `read_log`
counts the lines of each range once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from workbench.datasets.formats import FORMATS, LineFormat
from workbench.errors import DataError
from workbench.locations import matching
from workbench.pipelines.logs.formats import LogFormat
from workbench.pipelines.logs.ranges import ByteRange, count_lines, ranges_of, read_range, shift_lines
from workbench.pipelines.logs.reading import SPARK_ROWS, known_format, name_tables, schemas
from workbench.suggestion import meant

MOST_COUNTING = 16  # tasks for the rejected lines of a file
TABLES = ("rows", "rejected")


class LogSource(DataSource):
    """The data source of ``spark.read.format("workbench.log")``."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which Spark selects this data source."""
        return "workbench.log"

    def schema(self) -> Any:
        """Return the Spark schema of the selected table. Raises DataError for an unknown format or table."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(schemas(_parse_format(self.options))[TABLES.index(_parse_table(self.options))])

    def reader(self, schema: Any) -> DataSourceReader:
        """Return a reader of the log files in the option `path`. ``schema`` is ignored.

        Raises DataError for missing or invalid options.
        """
        return LogReader(self.options)


class LogReader(DataSourceReader):
    """A reader of the rows or the rejected lines of log files."""

    def __init__(self, options: Any) -> None:
        self._format, self._table = _parse_format(options), _parse_table(options)
        self._range_B = _parse_range_B(options)
        self._names = [name for path in _parse_paths(options) for name in matching(path)]

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each byte range: (name of the file, range, number of bytes of its header)."""
        most = MOST_COUNTING if self._table == "rejected" else None
        return [
            InputPartition((name, byte_range, file_ranges[0].start_B))
            for name in self._names
            for file_ranges in [ranges_of(name, self._format, self._range_B, most)]
            for byte_range in file_ranges
        ]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows or the rejected lines of a partition."""
        name, byte_range, header_B = partition.value
        lines_before: int | None = None
        for chunk in read_range(byte_range, self._format):
            rows, rejected = name_tables(chunk, name, self._format)
            if self._table == "rows":
                yield from rows.to_batches(SPARK_ROWS)
            elif len(rejected):
                if lines_before is None:
                    lines_before = _count_lines_before(byte_range, header_B)
                yield from shift_lines(rejected, lines_before).to_batches(SPARK_ROWS)


def _count_lines_before(byte_range: ByteRange, header_B: int) -> int:
    """Return the number of lines of a file between its header, which has ``header_B`` bytes, and the range."""
    if byte_range.start_B == header_B:
        return 0
    return count_lines(byte_range._replace(start_B=header_B, end_B=byte_range.start_B))


def _parse_format(options: Any) -> LineFormat:
    text = options.get("format")
    if text is None:
        raise DataError(
            f'workbench.log has no format; use .option("format", NAME), where NAME is one of {", ".join(FORMATS)}, '
            f"or the JSON of a LogFormat (to_json)"
        )
    return LogFormat.from_json(text) if text.lstrip().startswith("{") else known_format(text)


def _parse_table(options: Any) -> str:
    table = options.get("table", TABLES[0])
    if table not in TABLES:
        raise DataError(f"the option 'table' is {table!r:.40}{meant(table, TABLES)}; it must be rows or rejected")
    return table


def _parse_paths(options: Any) -> list[str]:
    # Spark stores a list of paths as JSON.
    paths = [options["path"]] if "path" in options else json.loads(options.get("paths", "[]"))
    if not paths:
        raise DataError('workbench.log has no path; use .load("logs/*.csv")')
    return paths


def _parse_range_B(options: Any) -> int | None:
    text = options.get("range_MB")
    if text is None:
        return None
    try:
        range_B = int(float(text) * (1 << 20))
    except (ValueError, OverflowError):
        range_B = 0
    if range_B < 1:
        raise DataError(f"the option 'range_MB' is {text!r:.40}; it must be a number of megabytes above 0")
    return range_B
