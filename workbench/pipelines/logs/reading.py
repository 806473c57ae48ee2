"""Reading of logs into a table of rows, and a table of rejected lines with their reasons.

Theory of operation
    A file is cut at line ends into pieces; `workbench.datasets.chunks` converts a piece to rows and rejected lines. In
    this process a few threads read the pieces; on Spark each piece is a task. Line numbers are those of the
    file: for Spark, a first pass over the file counts its line ends. An archive (.gz, .zst) is decompressed while it is
    read. It can only be read from its beginning, so on Spark each archive is one task; the first pass checks that it is
    not damaged.

Cost
    In this process, reading uses up to four cores, each at the rate given in `workbench.datasets.chunks`. The memory
    holds all rows, or with ``out`` only a few pieces. Two cores read 1.3 to 1.9 million lines of the Intel Lab per
    second. Spark reads a log when a query needs it, and again for each query, unless the rows are persisted
    (``log.rows.persist()``).

Limits
    Spark's workers read the files themselves, so all of them must find the files under the same paths.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets.archives import codec_of
from workbench.datasets.chunks import REJECTED, Chunk, check_header, chunks, read_chunk
from workbench.datasets.formats import FORMATS, LineFormat
from workbench.datasets.loaders import frame_of
from workbench.datasets.parts import Tally, parts_of
from workbench.errors import DataError
from workbench.keywords import checked
from workbench.pipelines.queries import run_query
from workbench.pipelines.shipping import ship
from workbench.suggestion import meant

SPARK_PIECE_B = 32 << 20
SPARK_ROWS = 1 << 16  # in a batch that is sent to Java
CHECKED_B = 4 << 20  # of a file's beginning, to check its format before Spark reads it
_FILE = pa.field("file", pa.string())

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

    path_or_paths  paths, or patterns such as "logs/*.gz" ("**": all folders below). Archives (gzip, Zstandard) are
                decompressed
    format      a `LogFormat`, or the name of a known one: "ulb-readings", "ulb-neighbors", "intel-readings",
                "intel-connectivity", "intel-positions", "mercator"
    spark       a Spark session; rows and rejected are then DataFrames of Spark instead of pandas frames
    out         a folder for rows.parquet and rejected.parquet, written piece by piece, for logs larger than memory
    progress    function called with the share of bytes read, 0 to 1

    Raises DataError for a file that cannot be read, for a damaged archive, and for a pattern without files. Raises
    DataError also for a file without the header that the format needs, and for a file of which fewer than one line in
    twenty is a valid row. On Spark this share is computed from the lines at the beginning of each file.
    """
    line_format = _format(format)
    paths = [path_or_paths] if isinstance(path_or_paths, str | os.PathLike) else list(path_or_paths)
    if not paths:
        raise DataError("the list of logs is empty; give at least one path")
    path_names = [name for path in paths for name in _matching_names(os.fspath(path))]
    if spark is not None:
        if out is not None:
            raise DataError("`out` and `spark` are both given; on Spark omit `out`, use log.rows.write.parquet(...)")
        return _read_on_spark(spark, path_names, line_format)
    return (
        _read_to_folder(Path(out), path_names, line_format, progress)
        if out is not None
        else _read_to_memory(path_names, line_format, progress)
    )


def _matching_names(name_or_pattern: str) -> list[str]:
    """Return the names of the files that match a pattern, sorted; a name without wildcards stays as it is.

    Raises DataError if a pattern matches no file.
    """
    if not glob.has_magic(name_or_pattern) or os.path.exists(name_or_pattern):
        return [name_or_pattern]
    names = sorted(filter(os.path.isfile, glob.glob(name_or_pattern, recursive=True)))
    if not names:
        raise DataError(f"no file matches {name_or_pattern!r}")
    return names


def _format(format_or_name: LineFormat | str) -> LineFormat:
    if isinstance(format_or_name, LineFormat):
        return format_or_name
    if format_or_name not in FORMATS:
        raise DataError(
            f"unknown log format {format_or_name!r:.40}{meant(str(format_or_name), FORMATS)}; "
            f"formats are {', '.join(FORMATS)}"
        )
    return FORMATS[format_or_name]


def _with_file(table: pa.Table, name: str) -> pa.Table:
    return table.append_column(_FILE, pa.repeat(name, len(table)))


def _schemas(form: LineFormat) -> tuple[pa.Schema, pa.Schema]:
    """Return (Arrow schema of the table of rows, Arrow schema of the table of rejected lines)."""
    return form.schema.append(_FILE), REJECTED.insert(0, _FILE)


def _name_tables(chunk: Chunk, name: str, form: LineFormat) -> tuple[pa.Table, pa.Table]:
    """Return a chunk's tables of rows and of rejected lines, both with the file's name added as a column."""
    return _with_file(chunk.rows, name), _with_file(chunk.rejected, name).select(_schemas(form)[1].names)


# In this process


def _read(
    names: list[str], form: LineFormat, progress: Callable[[float], Any] | None
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield (table of rows, table of rejected lines) for each piece of each file; ``names`` are the files' paths.

    ``progress`` is called with the share of bytes read, 0 to 1.
    """
    total_B = max(1, sum(os.path.getsize(name) for name in names if os.path.isfile(name)))
    done_B = 0
    for name in names:
        for size_B, piece in parts_of(name, form, Tally()):
            yield _name_tables(piece, name, form)
            done_B += size_B
            if progress is not None:
                progress(done_B / total_B)


def _read_to_memory(names: list[str], form: LineFormat, progress: Callable[[float], Any] | None) -> Log:
    tables = [[schema.empty_table()] for schema in _schemas(form)]
    for pieces in _read(names, form, progress):
        for table_pieces, piece in zip(tables, pieces, strict=True):
            table_pieces.append(piece)
    return Log(*map(frame_of, tables))


def _read_to_folder(folder: Path, names: list[str], form: LineFormat, progress: Callable[[float], Any] | None) -> Log:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "rows.parquet", folder / "rejected.parquet"]
    draft_paths = [path.with_suffix(".begun") for path in paths]
    writers = [pq.ParquetWriter(path, schema) for path, schema in zip(draft_paths, _schemas(form), strict=True)]
    try:
        try:
            for row_tables in _read(names, form, progress):
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

# Absolute path, first byte, number of bytes, number of the first line. The range of an archive has no number of bytes.
_Range = tuple[str, int, int | None, int]


def _read_on_spark(spark: Any, names: list[str], form: LineFormat) -> Log:
    ranges = [(number, byte_range) for number, name in enumerate(names) for byte_range in _ranges(name, form)]
    ship(spark)
    return Log(*(_map_ranges(spark, ranges, names, form, index) for index in range(2)))


def _ranges(name: str, form: LineFormat) -> Iterator[_Range]:
    """Yield the byte ranges of a file's pieces.

    Raises DataError if the file's beginning has another format or lacks the header, and if an archive is damaged.
    """
    path, is_archive = os.path.abspath(name), False  # Workers have another working directory.
    for piece in chunks(name, _size_B(name, form)):
        if piece.start == 0:
            is_archive = codec_of(name) is not None
            check_header(name, piece.data, form)
            checked_B = piece.data.rfind(b"\n", 0, CHECKED_B) + 1
            line_counts = Tally()
            line_counts.add(read_chunk(piece.data[: checked_B or len(piece.data)], form, form.parser()))
            line_counts.check(name, form)
        if not is_archive:
            yield path, piece.start, len(piece.data), piece.first_line
    if is_archive:
        yield path, 0, None, 1


def _read_range(byte_range: _Range, form: LineFormat) -> Iterator[Chunk]:
    """Yield the contents of a byte range in chunks."""
    path, start_B, length_B, first_line = byte_range
    parse = form.parser()
    if length_B is None:
        for piece in chunks(path):
            yield read_chunk(piece.data, form, parse, piece.first_line)
        return
    with open(path, "rb") as file:
        file.seek(start_B)
        yield read_chunk(file.read(length_B), form, parse, first_line)


def _size_B(name: str, form: LineFormat) -> int:
    return max(SPARK_PIECE_B, os.path.getsize(name)) if form.is_whole and os.path.isfile(name) else SPARK_PIECE_B


def _map_ranges(spark: Any, ranges: list[tuple[int, _Range]], names: list[str], form: LineFormat, index: int) -> Any:
    """Return a Spark DataFrame of the rows (``index`` 0) or the rejected lines (``index`` 1) of all byte ranges.

    Each range is a task; it has the index of its file in ``names``. To save space, workers return each row with this
    index, and Spark replaces it by the name.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = _schemas(form)[index]
    sent_schema = schema.set(schema.get_field_index("file"), pa.field("file", pa.int32()))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for range_number in batch.column(0).to_pylist():
                name_index, byte_range = ranges[range_number]
                for chunk in _read_range(byte_range, form):
                    table = chunk.rejected if index else chunk.rows
                    file_numbers = pa.array(np.full(len(table), name_index + 1, np.int32))
                    sent_table = table.append_column("file", file_numbers).select(sent_schema.names)
                    yield from sent_table.to_batches(SPARK_ROWS)

    spark_rows = spark.range(0, len(ranges), 1, max(1, len(ranges))).mapInArrow(read, from_arrow_schema(sent_schema))
    # SQL instead of `pyspark.sql.functions`, which do not work with a session of Spark Connect and a classic one alike.
    literals = ", ".join(f"CAST(X'{os.fsencode(name).hex()}' AS STRING)" for name in names)
    columns = {name: f"`{name}`" for name in schema.names} | {"file": f"element_at(array({literals}), file) AS file"}
    return spark_rows.selectExpr(*columns.values())
