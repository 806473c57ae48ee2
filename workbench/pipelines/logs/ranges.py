"""Byte ranges of log files, which Spark's tasks read independently of each other.

Theory of operation
    A file is cut at fixed byte offsets. A line belongs to the range in which it begins: a range is read from the first
    line that begins at its offset or later, up to the end of its last line, which may be in a later range. So each line
    belongs to exactly one range, and only the size and the beginning of a file need to be read to cut it.

    The beginning contains the header, so ranges begin after it. It is also compared with the format, so that a wrong
    format raises an error before any task runs.

    A range's line numbers are unknown until the line ends before the range are counted. So `read_range` numbers lines
    as if the range were the first of its file; the number of lines before it (`count_lines`) must be added.

    An archive can only be read from its beginning, and a format may depend on earlier lines. Then the whole file is one
    range, whose line numbers are those of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets.archives import codec_of
from workbench.datasets.chunks import (
    CHUNK_B,
    LONGEST_LINE_B,
    Chunk,
    check_header,
    chunks,
    count_header_lines,
    read_chunk,
)
from workbench.datasets.formats import LineFormat
from workbench.datasets.parts import Tally
from workbench.errors import DataError
from workbench.locations import is_url, open_binary, size_B

RANGE_B = 32 << 20
CHECKED_B = 4 << 20  # of a file's beginning, to find its header and to check its format


class ByteRange(NamedTuple):
    """The lines of a file that begin in the bytes [start_B, end_B).

    ``path`` is the absolute path or the URL of the file, and ``first_line`` the number of the line after its header. If
    ``end_B`` is None, the range is the whole file, and the header is part of it.
    """

    path: str
    start_B: int
    end_B: int | None
    first_line: int


def ranges_of(name: str, form: LineFormat, range_B: int | None = None, most: int | None = None) -> list[ByteRange]:
    """Return the byte ranges into which the log file ``name`` is divided, each of ``range_B`` bytes (None: `RANGE_B`).

    If there would be more than ``most`` ranges, they are made larger. A file that cannot be divided is a single range.
    Raises DataError if the file cannot be read, or if its beginning lacks the header that the format ``form`` needs.
    Raises it also if fewer than one line in twenty of the beginning is a valid row.
    """
    beginning = _read_beginning(name, form)
    check_header(name, beginning, form)
    line_counts = Tally()
    line_counts.add(read_chunk(beginning, form, form.parser()))
    line_counts.check(name, form)
    # Workers have another working directory.
    path = name if is_url(name) else os.path.abspath(name)
    if form.is_whole or codec_of(name) is not None:
        return [ByteRange(path, 0, None, 1)]
    header_lines = count_header_lines(beginning, form, 1)
    header_B = sum(len(line) + 1 for line in beginning.split(b"\n", header_lines)[:header_lines])
    file_B = size_B(name)
    if file_B < len(beginning):
        raise DataError(f"{name!r} is not a regular file; tasks of Spark can only read regular files and objects")
    length_B = max(range_B or RANGE_B, -(-(file_B - header_B) // most) if most else 1)
    return [
        ByteRange(path, start_B, min(start_B + length_B, file_B), header_lines + 1)
        for start_B in range(header_B, file_B, length_B)
    ]


def _read_beginning(name: str, form: LineFormat) -> bytes:
    """Return the beginning of a file in whole lines: about `CHECKED_B` bytes, but more lines than the header has."""
    beginning = b""
    for piece in chunks(name, CHECKED_B):
        beginning += piece.data
        # The last line of a short file may be a piece of its own.
        if len(beginning) > CHECKED_B // 2 and beginning.count(b"\n") > form.header:
            break
    return beginning


def read_range(byte_range: ByteRange, form: LineFormat, block_B: int = CHUNK_B) -> Iterator[Chunk]:
    """Yield the rows and rejected lines of a range in chunks of about ``block_B`` bytes.

    Rejected lines are numbered as if the range were the first of its file. Raises DataError if an archive is damaged.
    """
    parse = form.parser()
    if byte_range.end_B is None:
        for piece in chunks(byte_range.path, block_B):
            yield read_chunk(piece.data, form, parse, piece.first_line)
        return
    # With a larger number than those of the header, `read_chunk` does not search the range for a header.
    after_header = form.header + 1
    shift, line = byte_range.first_line - after_header, after_header
    for block in _read_blocks(byte_range, block_B):
        chunk = read_chunk(block, form, parse, line)
        yield chunk._replace(rejected=shift_lines(chunk.rejected, shift))
        line += block.count(b"\n")


def count_lines(byte_range: ByteRange, block_B: int = CHUNK_B) -> int:
    """Return the number of line ends in a range of bytes, whose end ``end_B`` must be known (not None).

    The range is read in blocks of about ``block_B`` bytes.
    """
    return sum(block.count(b"\n") for block in _read_blocks(byte_range, block_B))


def shift_lines(rejected: pa.Table, lines: int) -> pa.Table:
    """Return a table of rejected lines in which each line number is larger by ``lines``."""
    if not lines or not len(rejected):
        return rejected
    index = rejected.schema.get_field_index("line")
    return rejected.set_column(index, rejected.field(index), pc.add(rejected["line"], lines))


def _read_blocks(byte_range: ByteRange, block_B: int) -> Iterator[bytes]:
    """Yield the lines of a range in blocks of whole lines, each of about ``block_B`` bytes."""
    path, position_B, end_B, _ = byte_range
    assert end_B is not None
    try:
        with open_binary(path) as file:
            if position_B > 0:
                # The line that contains the last byte before the range belongs to an earlier range.
                file.seek(position_B - 1)
                position_B += len(_read_rest_of_line(file, path)) - 1
            while position_B < end_B and (block := file.read(min(block_B, end_B - position_B))):
                if not block.endswith(b"\n"):
                    block += _read_rest_of_line(file, path)
                yield block
                position_B += len(block)
    except OSError as error:
        raise DataError(f"{path!r} cannot be read by a task of Spark ({error.strerror or error})") from error


def _read_rest_of_line(file: BinaryIO, path: str) -> bytes:
    """Return the bytes of an open file from its position to the next line end, which is included.

    Raises DataError for more than `LONGEST_LINE_B` bytes.
    """
    rest = file.readline(LONGEST_LINE_B + 1)
    if len(rest) > LONGEST_LINE_B:
        raise DataError(f"{Path(path).name} has a line that is longer than {LONGEST_LINE_B >> 20} MB")
    return rest
