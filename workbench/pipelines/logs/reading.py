"""Logs as tables: what can be read as rows, and each line that cannot with its reason.

Theory of operation
    A file is cut at line ends; each piece becomes rows and rejected lines by `workbench.datasets.chunks`. The same
    function does it here, piece by piece, and on Spark, where a task is a piece. Line numbers are the file's: a first
    pass over a file that goes to Spark counts its line ends.

Cost
    Here: what `workbench.datasets.chunks` says of a core, on up to four cores, and memory for the rows; with ``out``
    for a few pieces. Of the Intel Lab's lines two cores read 1.3 to 1.9 million a second, files and tables included.
    On Spark nothing is read before somebody asks, and again for each question: keep what is asked twice
    (``log.rows.persist()``).

Limits
    Spark's workers read the files themselves: they have to be where all of them see them, and so has the workbench.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets.chunks import REJECTED, Chunk, chunks, read_chunk
from workbench.datasets.formats import FORMATS, LineFormat
from workbench.datasets.loaders import frame_of
from workbench.datasets.parts import Tally, parts_of
from workbench.errors import DataError
from workbench.keywords import checked
from workbench.pipelines.ask import ask
from workbench.suggestion import meant

SPARK_PIECE_B = 32 << 20
SPARK_ROWS = 1 << 16  # in a batch on their way to Java
LOOK_B = 4 << 20  # of a file's beginning, to see before Spark does whether it is of its format
_FILE = pa.field("file", pa.string())

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Log:
    """A log that was read: ``rows``, with the column file, and ``rejected``, the lines that are none.

    Both are pandas frames, Parquet files (paths), or DataFrames of Spark. Columns of ``rejected``: file, line, rule
    ("unreadable", or the first check that the row does not meet, without the row's values: "length … of …"), reason
    (all of them, with the values: "length 37 of 100"), text (the line's first 120 characters).
    """

    rows: Any
    rejected: Any

    def reasons(self) -> Any:
        """How many lines each rule rejected in each file: file, rule, lines, the most first."""
        return ask(
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
    """Read log files of one format.

    format      a `LogFormat`, or the name of a known one: "ulb-readings", "ulb-neighbors", "intel-readings",
                "intel-connectivity", "intel-positions", "mercator"
    spark       a session: rows and rejected are DataFrames of Spark then, else pandas frames
    out         a folder for rows.parquet and rejected.parquet, written piece by piece: for what does not fit in memory
    progress    is called with the share of the bytes that are read, 0 to 1

    DataError for a file that cannot be read, or in which fewer than one line in twenty is a row (on Spark: of those at
    its beginning).
    """
    form = _format(format)
    paths = [path_or_paths] if isinstance(path_or_paths, str | os.PathLike) else list(path_or_paths)
    if not paths:
        raise DataError("there is no log to read; give at least one path")
    names = [os.fspath(path) for path in paths]
    if spark is not None:
        if out is not None:
            raise DataError("out is for logs that are read here; on Spark write log.rows.write.parquet(...)")
        return _on_spark(spark, names, form)
    return _kept_in(Path(out), names, form, progress) if out is not None else _in_memory(names, form, progress)


def _format(given: LineFormat | str) -> LineFormat:
    if isinstance(given, LineFormat):
        return given
    if given not in FORMATS:
        raise DataError(
            f"there is no log format {given!r:.40}{meant(str(given), FORMATS)}; known: {', '.join(FORMATS)}"
        )
    return FORMATS[given]


def _with_file(table: pa.Table, name: str) -> pa.Table:
    return table.append_column(_FILE, pa.repeat(name, len(table)))


def _schemas(form: LineFormat) -> tuple[pa.Schema, pa.Schema]:
    """The schemas of rows and rejected lines."""
    return form.schema.append(_FILE), REJECTED.insert(0, _FILE)


def _named(chunk: Chunk, name: str, form: LineFormat) -> tuple[pa.Table, pa.Table]:
    """Rows and rejected lines, with the file's name."""
    return _with_file(chunk.rows, name), _with_file(chunk.rejected, name).select(_schemas(form)[1].names)


# Here


def _read(
    names: list[str], form: LineFormat, progress: Callable[[float], Any] | None
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Rows and rejected lines, piece by piece."""
    total_B = max(1, sum(os.path.getsize(name) for name in names if os.path.isfile(name)))
    done_B = 0
    for name in names:
        for size_B, part in parts_of(name, form, Tally()):
            yield _named(part, name, form)
            done_B += size_B
            if progress is not None:
                progress(done_B / total_B)


def _in_memory(names: list[str], form: LineFormat, progress: Callable[[float], Any] | None) -> Log:
    tables = [[schema.empty_table()] for schema in _schemas(form)]
    for parts in _read(names, form, progress):
        for kept, part in zip(tables, parts, strict=True):
            kept.append(part)
    return Log(*map(frame_of, tables))


def _kept_in(folder: Path, names: list[str], form: LineFormat, progress: Callable[[float], Any] | None) -> Log:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "rows.parquet", folder / "rejected.parquet"]
    begun = [path.with_suffix(".begun") for path in paths]
    writers = [pq.ParquetWriter(path, schema) for path, schema in zip(begun, _schemas(form), strict=True)]
    try:
        try:
            for parts in _read(names, form, progress):
                for writer, part in zip(writers, parts, strict=True):
                    if len(part):
                        writer.write_table(part)
        finally:
            for writer in writers:
                writer.close()
        for unfinished, path in zip(begun, paths, strict=True):
            unfinished.replace(path)
    finally:
        for unfinished in begun:
            unfinished.unlink(missing_ok=True)
    return Log(*paths)


# On Spark

_Range = tuple[str, int, int, int]  # file, first byte, bytes, number of the first line


def _on_spark(spark: Any, names: list[str], form: LineFormat) -> Log:
    ranges = [part for name in names for part in _ranges(name, form)]
    return Log(*(_mapped(spark, ranges, names, form, place) for place in range(2)))


def _ranges(name: str, form: LineFormat) -> Iterator[_Range]:
    """The pieces of a file; its first is read, to see that the file is of this format."""
    for piece in chunks(name, _size_B(name, form)):
        if piece.start == 0:
            cut = piece.data.rfind(b"\n", 0, LOOK_B) + 1
            tally = Tally()
            tally.add(read_chunk(piece.data[: cut or len(piece.data)], form, form.parser()))
            tally.check(name, form)
        yield name, piece.start, len(piece.data), piece.first_line


def _size_B(name: str, form: LineFormat) -> int:
    return max(SPARK_PIECE_B, os.path.getsize(name)) if form.is_whole and os.path.isfile(name) else SPARK_PIECE_B


def _mapped(spark: Any, ranges: list[_Range], names: list[str], form: LineFormat, place: int) -> Any:
    """A DataFrame of the rows (place 0) or the rejected lines (1) of all ranges, a task each.

    A worker sends the number of a file; its name would be the longest column.
    """
    from pyspark.sql.functions import array, col, element_at, lit
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = _schemas(form)[place]
    sent = schema.set(schema.get_field_index("file"), pa.field("file", pa.int32()))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                name, start, length, first_line = ranges[number]
                with open(name, "rb") as file:
                    file.seek(start)
                    chunk = read_chunk(file.read(length), form, form.parser(), first_line)
                part = chunk.rejected if place else chunk.rows
                which = pa.array(np.full(len(part), names.index(name) + 1, np.int32))
                yield from part.append_column("file", which).select(sent.names).to_batches(SPARK_ROWS)

    found = spark.range(0, len(ranges), 1, max(1, len(ranges))).mapInArrow(read, from_arrow_schema(sent))
    return found.withColumn("file", element_at(array(*map(lit, names)), col("file")))
