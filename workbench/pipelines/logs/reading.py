"""Reading of logs into a table of rows, and a table of rejected lines with their reasons.

Theory of operation
    A file is cut at line ends into pieces; `workbench.datasets.chunks` converts a piece to rows and rejected lines. In
    this process a few threads read the pieces. An archive (.gz, .zst) is decompressed while it is read.

    On Spark this process reads only the beginnings of files. Tasks read byte ranges (`ranges`), and archives as a
    whole. Line numbers are those of the file: a query of the rejected lines of a file with several ranges also counts
    the lines of each range, in tasks of its own. Rows have no line numbers, so their queries read each byte once.

Cost
    In this process, reading uses up to four cores, each at the rate given in `workbench.datasets.chunks`. The memory
    holds all rows, or with ``out`` only a few pieces. Two cores read 1.3 to 1.9 million lines of the Intel Lab per
    second. Spark reads a log when a query needs it, and again for each query, unless the rows are persisted
    (``log.rows.persist()``).

Limits
    Spark's workers read the files themselves, so all of them must find the files under the same paths or URLs. If an
    archive is damaged, or a file has changed, the task that reads it fails, and the query fails with the task's error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets.chunks import REJECTED, Chunk
from workbench.datasets.formats import FORMATS, LineFormat
from workbench.datasets.loaders import frame_of
from workbench.datasets.parts import Tally, parts_of
from workbench.errors import DataError
from workbench.keywords import checked
from workbench.locations import local_path, matching, size_B
from workbench.pipelines.logs.ranges import ByteRange, count_lines, ranges_of, read_range
from workbench.pipelines.queries import run_query
from workbench.pipelines.shipping import ship
from workbench.suggestion import meant

SPARK_ROWS = 1 << 16  # in a batch that is sent to Java
COUNTED_IN_TASK = 16  # ranges whose lines a task counts, which takes about as long as parsing one of them
_FILE = pa.field("file", pa.string())
_RANGE_NUMBER = pa.field("range_number", pa.int64())
# Numbers of ranges increase within a file. The counts are few, so each task gets a copy of them.
_LINE_NUMBERS = """
SELECT /*+ BROADCAST(before) */ rejected.line + coalesce(before.lines, 0) AS line, rule, reason, text, file_index
FROM {rejected} AS rejected LEFT JOIN (
  SELECT range_number + 1 AS range_number, sum(lines) OVER (PARTITION BY file_index ORDER BY range_number) AS lines
  FROM {counts}
) AS before ON before.range_number = rejected.range_number
"""

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Log:
    """The result of `read_log`: the valid ``rows`` of a log, with the column file, and its ``rejected`` lines.

    Both tables are pandas frames, Parquet files (paths), or DataFrames of Spark. ``rejected`` has the columns

    file    name of the log file
    line    number of the line
    rule    "unreadable", or the first check that the row breaks, without its values: "length … of …"
    reason  all checks that the row breaks, with their values: "length 37 of 100"
    text    the first 120 characters of the line
    """

    rows: Any
    rejected: Any

    def reasons(self) -> Any:
        """Return a table of the number of lines that each rule rejected in each file. Columns: file, rule, lines."""
        return run_query(
            "SELECT file, rule, count(*) AS lines FROM {rejected} GROUP BY file, rule ORDER BY file, lines DESC, rule",
            rejected=self.rejected,
        )


@checked
def read_log(
    path_or_paths: Paths,
    format: LineFormat | str,
    spark: Any = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[float], Any] | None = None,
) -> Log:
    """Read log files of one format into tables of rows and of rejected lines.

    path_or_paths  paths, URLs of objects ("s3://bucket/a.log"), or patterns such as "logs/*.gz" ("**": all folders
                below). Archives (gzip, Zstandard) are decompressed
    format      a `LogFormat`, or the name of a known one: "ulb-readings", "ulb-neighbors", "intel-readings",
                "intel-connectivity", "intel-positions", "mercator"
    spark       a Spark session; rows and rejected are then DataFrames of Spark instead of pandas frames
    out         a folder for rows.parquet and rejected.parquet, written piece by piece, for logs larger than memory;
                rows and rejected are then the paths of these files
    progress    function called with the share of bytes read, 0 to 1

    Raises DataError for a file that cannot be read, for a damaged archive, and for a pattern without files. Raises
    DataError also for a file without the header that the format needs, and for a file of which fewer than one line in
    twenty is a valid row. On Spark this share is computed from the lines at the beginning of each file, and an archive
    that is damaged after its beginning makes the query fail.
    """
    line_format = known_format(format)
    paths = [path_or_paths] if isinstance(path_or_paths, str | os.PathLike) else list(path_or_paths)
    if not paths:
        raise DataError("the list of logs is empty; give at least one path")
    path_names = [name for path in paths for name in matching(os.fspath(path))]
    if spark is not None:
        if out is not None:
            raise DataError("`out` and `spark` are both given; on Spark omit `out`, use log.rows.write.parquet(...)")
        return _read_on_spark(spark, path_names, line_format)
    return (
        _read_to_folder(local_path(out, "out"), path_names, line_format, progress)
        if out is not None
        else _read_to_memory(path_names, line_format, progress)
    )


def known_format(format_or_name: LineFormat | str) -> LineFormat:
    """Return the known format with the name ``format_or_name``; a `LineFormat` is returned unchanged.

    Raises DataError for an unknown name.
    """
    if isinstance(format_or_name, LineFormat):
        return format_or_name
    if format_or_name not in FORMATS:
        raise DataError(
            f"unknown log format {format_or_name!r:.40}{meant(str(format_or_name), FORMATS)}; "
            f"formats are {', '.join(FORMATS)}"
        )
    return FORMATS[format_or_name]


def _add_file_column(table: pa.Table, name: str) -> pa.Table:
    return table.append_column(_FILE, pa.repeat(name, len(table)))


def schemas(form: LineFormat) -> tuple[pa.Schema, pa.Schema]:
    """Return (Arrow schema of the table of rows, Arrow schema of the table of rejected lines)."""
    return form.schema.append(_FILE), REJECTED.insert(0, _FILE)


def name_tables(chunk: Chunk, name: str, form: LineFormat) -> tuple[pa.Table, pa.Table]:
    """Return a chunk's tables of rows and of rejected lines, both with the file's name added as a column."""
    return _add_file_column(chunk.rows, name), _add_file_column(chunk.rejected, name).select(schemas(form)[1].names)


# In this process


def _read_files(
    names: list[str], form: LineFormat, progress: Callable[[float], Any] | None
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield (table of rows, table of rejected lines) for each piece of each file; ``names`` are the files' paths.

    ``progress`` is called with the share of bytes read, 0 to 1.
    """
    total_B = max(1, sum(map(size_B, names)))
    done_B = 0
    for name in names:
        for read_B, piece in parts_of(name, form, Tally()):
            yield name_tables(piece, name, form)
            done_B += read_B
            if progress is not None:
                progress(done_B / total_B)


def _read_to_memory(names: list[str], form: LineFormat, progress: Callable[[float], Any] | None) -> Log:
    tables = [[schema.empty_table()] for schema in schemas(form)]
    for pieces in _read_files(names, form, progress):
        for table_pieces, piece in zip(tables, pieces, strict=True):
            table_pieces.append(piece)
    return Log(*map(frame_of, tables))


def _read_to_folder(folder: Path, names: list[str], form: LineFormat, progress: Callable[[float], Any] | None) -> Log:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "rows.parquet", folder / "rejected.parquet"]
    draft_paths = [path.with_suffix(".begun") for path in paths]
    writers = [pq.ParquetWriter(path, schema) for path, schema in zip(draft_paths, schemas(form), strict=True)]
    try:
        try:
            for row_tables in _read_files(names, form, progress):
                for writer, table in zip(writers, row_tables, strict=True):
                    if len(table):
                        writer.write_table(table)
        finally:
            for writer in writers:
                writer.close()
        for draft_path, path in zip(draft_paths, paths, strict=True):
            draft_path.replace(path)
    finally:
        for draft_path in draft_paths:
            draft_path.unlink(missing_ok=True)
    return Log(*paths)


# On Spark


def _read_on_spark(spark: Any, names: list[str], form: LineFormat) -> Log:
    """Return the log as DataFrames of Spark. Only the beginnings of the files are read now, to check their format."""
    # (index of the file in `names`, range)
    ranges = [(index, byte_range) for index, name in enumerate(names) for byte_range in ranges_of(name, form)]
    ship(spark)
    tables = _Tables(spark, names, form, ranges)
    return Log(tables.rows(), tables.rejected())


@dataclass(frozen=True)
class _Tables:
    """The tables of a log on Spark.

    Each entry of ``ranges`` is (index of a file in ``names``, byte range of this file), and is read by a task.
    """

    spark: Any
    names: list[str]
    form: LineFormat
    ranges: list[tuple[int, ByteRange]]

    def rows(self) -> Any:
        """Return the DataFrame of valid rows."""
        form = self.form

        def read(number: int, byte_range: ByteRange) -> Iterator[pa.Table]:
            return (chunk.rows for chunk in read_range(byte_range, form))

        return self._resolve_file_names(self._map_ranges(range(len(self.ranges)), read, form.schema), schemas(form)[0])

    def rejected(self) -> Any:
        """Return the DataFrame of rejected lines.

        If a file has several ranges, a query of the table also counts the lines of each range. It adds the number of
        lines before a range to the line numbers within the range.
        """
        form = self.form

        def read(number: int, byte_range: ByteRange) -> Iterator[pa.Table]:
            return (_add_number_column(chunk.rejected, number) for chunk in read_range(byte_range, form))

        def count(number: int, byte_range: ByteRange) -> Iterator[pa.Table]:
            yield _add_number_column(pa.table({"lines": [count_lines(byte_range)]}), number)

        rejected_lines = self._map_ranges(range(len(self.ranges)), read, REJECTED.append(_RANGE_NUMBER))
        files = [index for index, _ in self.ranges]
        followed = [number for number, (index, next_index) in enumerate(pairwise(files)) if index == next_index]
        if followed:
            count_schema = pa.schema([("lines", pa.int64()), _RANGE_NUMBER])
            line_counts = self._map_ranges(followed, count, count_schema, COUNTED_IN_TASK)
            rejected_lines = run_query(_LINE_NUMBERS, rejected=rejected_lines, counts=line_counts)
        return self._resolve_file_names(rejected_lines, schemas(form)[1])

    def _map_ranges(
        self,
        numbers: Sequence[int],
        read: Callable[[int, ByteRange], Iterable[pa.Table]],
        schema: pa.Schema,
        ranges_in_task: int = 1,
    ) -> Any:
        """Return a DataFrame that joins the tables which ``read`` returns for the ranges with these ``numbers``.

        ``numbers`` are indices in ``ranges``. Tasks call ``read`` with such an index and its range; a task reads
        ``ranges_in_task`` ranges. To save space, rows have the column file_index, counted from 1, and not the name of
        the file.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        numbered_ranges = [(number, *self.ranges[number]) for number in numbers]
        sent_schema = schema.append(pa.field("file_index", pa.int32()))

        def read_ranges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for position in batch.column(0).to_pylist():
                    number, file_index, byte_range = numbered_ranges[position]
                    for table in read(number, byte_range):
                        file_indices = pa.array(np.full(len(table), file_index + 1, np.int32))
                        yield from pa.table([*table.columns, file_indices], sent_schema).to_batches(SPARK_ROWS)

        tasks = max(1, -(-len(numbers) // ranges_in_task))
        positions = self.spark.range(0, len(numbers), 1, tasks)
        return positions.mapInArrow(read_ranges, from_arrow_schema(sent_schema))

    def _resolve_file_names(self, table: Any, schema: pa.Schema) -> Any:
        """Return a DataFrame with the columns of ``schema``, and the names of files in place of their indices."""
        # SQL instead of `pyspark.sql.functions`, which do not work with a session of Spark Connect and a classic one
        # alike.
        literals = ", ".join(f"CAST(X'{os.fsencode(name).hex()}' AS STRING)" for name in self.names)
        columns = {name: f"`{name}`" for name in schema.names}
        columns["file"] = f"element_at(array({literals}), file_index) AS file"
        return table.selectExpr(*columns.values())


def _add_number_column(table: pa.Table, number: int) -> pa.Table:
    return table.append_column(_RANGE_NUMBER, pa.array(np.full(len(table), number, np.int64)))
