"""Fast parsing of logs: a chunk of a log's bytes becomes a table of rows and a table of rejected lines.

Theory of operation
    A file is decompressed if it is an archive (`archives`), and cut at line ends (`chunks`). `pyarrow.csv` reads all
    lines of a chunk that match the format's pattern in one call; the format's parser reads the other lines. The pattern
    is so strict that the parser would read the same values from a matching line. Rows are in the order of their lines.

    If the first lines of a file, where the format expects a header, are valid rows, the header is missing. The format
    states whether these lines are then read as rows, or whether `check_header` raises an error.

Cost
    `pyarrow.csv` reads 1.5 to 2 million lines of the Intel Lab (8 fields, only numbers) per second on one core, and 0.7
    million lines of Mercator (15 fields, some texts, 7 checks). The parser reads about 0.1 million lines per second. A
    chunk takes about ten times its size in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from workbench.datasets.archives import Archive, codec_of
from workbench.datasets.formats import TEXT, LineFormat, Parser
from workbench.errors import DataError
from workbench.locations import open_binary

CHUNK_B = 8 << 20
LONGEST_LINE_B = 256 << 20
SHOWN = 120  # most characters of a rejected line that a message quotes
UNREADABLE = "unreadable"  # the rule that a line breaks if the parser cannot read it

Part = tuple[np.ndarray, pa.Table]  # indices of lines, and their rows

REJECTED = pa.schema([("line", pa.int64()), ("rule", pa.string()), ("reason", pa.string()), ("text", pa.string())])


class Chunk(NamedTuple):
    """The contents of a chunk of a log.

    ``rows`` is the table of valid rows, ``rejected`` the table of rejected lines (`REJECTED`), and ``lines`` the number
    of lines that are neither blank nor header.
    """

    rows: pa.Table
    rejected: pa.Table
    lines: int


class Piece(NamedTuple):
    """A part of a file that ends at a line end.

    ``start`` is its offset in bytes, ``first_line`` the number of its first line, and ``data`` its bytes. For an
    archive, ``data`` is decompressed, and ``start`` is the offset in the decompressed content. ``read_B`` is the number
    of bytes that were read from the file for this piece.
    """

    start: int
    first_line: int
    data: bytes
    read_B: int


@dataclass
class _Rejected:
    """The rejected lines of a chunk: [(line number, broken rule, reason, excerpt of the line), ...]."""

    lines: list[tuple[int, str, str, str]] = field(default_factory=list)

    def add(self, line: int, rule: str, reason: str, text: bytes) -> None:
        excerpt = text.rstrip(b"\r\n").decode("utf-8", "replace")[:SHOWN]
        self.lines.append((line, rule, reason, excerpt))

    def table(self) -> pa.Table:
        columns = zip(*sorted(self.lines), strict=True) if self.lines else ((),) * len(REJECTED)
        return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, REJECTED, strict=True)], REJECTED)


def chunks(path: str | os.PathLike[str], size_B: int = CHUNK_B) -> Iterator[Piece]:
    """Yield a file in pieces of about ``size_B`` bytes, cut at line ends; an archive is decompressed.

    Raises DataError if the file cannot be read. If an archive is damaged, the lines before the damage are yielded
    first, and the error message has the number of these lines.
    """
    piece_start, line, incomplete_line, read_B = 0, 1, b"", 0
    file: BinaryIO | Archive | None = None
    try:
        codec = codec_of(path)
        with open_binary(path) if codec is None else Archive(path, codec) as file:
            while block_bytes := file.read(size_B):
                line_end = block_bytes.rfind(b"\n") + 1
                if line_end == 0:
                    incomplete_line += block_bytes
                    if len(incomplete_line) > LONGEST_LINE_B:
                        raise DataError(
                            f"{Path(path).name}: line {line} is longer than {LONGEST_LINE_B >> 20} MB; give a text "
                            f"file with shorter lines"
                        )
                    continue
                whole_lines = incomplete_line + block_bytes[:line_end]
                yield Piece(piece_start, line, whole_lines, file.tell() - read_B)
                piece_start, line, incomplete_line, read_B = (
                    piece_start + len(whole_lines),
                    line + whole_lines.count(b"\n"),
                    block_bytes[line_end:],
                    file.tell(),
                )
            if incomplete_line:
                yield Piece(piece_start, line, incomplete_line, file.tell() - read_B)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        if isinstance(file, Archive) and isinstance(error, OSError):
            raise DataError(file.damage(error, line - 1)) from error
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{os.fspath(path)!r} cannot be read ({reason}); give the path of a text file.") from error


def check_header(path: str | os.PathLike[str], data: bytes, form: LineFormat) -> None:
    """Raise DataError if a file has no header, but its format needs one.

    ``data`` is the beginning of the file, in whole lines.
    """
    if not form.has_optional_header and _lacks_header(data, form):
        first_line = data.partition(b"\n")[0].decode("utf-8", "replace").strip()
        raise DataError(
            f"{Path(path).name} has no header: format {form.name} skips {form.header} header "
            f"{'line' if form.header == 1 else 'lines'}, but line 1 is a row ({first_line:.60}); "
            f"read it with a format with header=0"
        )


def _lacks_header(data: bytes, form: LineFormat) -> bool:
    """Return whether the header of a file is missing: its first lines, where the format has a header, are valid rows.

    ``data`` is the beginning of the file. If all columns of the format are texts, a header would be a valid row too, so
    the result is False.
    """
    header_lines = data.split(b"\n", form.header)[: form.header]
    if not header_lines or all(kind == TEXT for kind in form.columns.values()):
        return False
    parse = form.parser()
    try:
        for line in header_lines:
            parse(form.fields(line))
    except (ValueError, OverflowError):
        return False
    return True


def count_header_lines(data: bytes, form: LineFormat, first_line: int) -> int:
    """Return the number of header lines in ``data``, a part of a file that begins at the line ``first_line``."""
    if first_line == 1 and form.has_optional_header and _lacks_header(data, form):
        return 0
    return max(0, form.header + 1 - first_line)


def read_chunk(data: bytes, form: LineFormat, parse: Parser, first_line: int = 1) -> Chunk:
    """Return the rows and rejected lines in ``data``, a part of a file that ends at a line end.

    ``form`` is the format of the lines, ``parse`` its parser, and ``first_line`` the number of the part's first line in
    the file.
    """
    normalized_text = _normalize(data, form)
    lines = _split_lines(normalized_text)
    original_lines = lines if normalized_text == _end_last_line(data) else _split_lines(_end_last_line(data))
    header_lines = count_header_lines(data, form, first_line)
    fast_parts, slow_indices = _parse_fast(lines, np.arange(header_lines, len(lines)), form)
    rejected = _Rejected()
    slow_part = _parse_lines(original_lines, slow_indices, form, parse, first_line, rejected)
    lines_of_rows, rows = _join_parts([*fast_parts, slow_part] if len(slow_part[0]) else fast_parts, form.schema)
    lines_read = len(rows) + len(rejected.lines)
    if form.checks and len(rows):
        rows = _reject_broken(rows, lines_of_rows, form.checks, original_lines, first_line, rejected)
    return Chunk(rows, rejected.table(), lines_read)


def _parse_lines(
    original_lines: pa.Array, indices: np.ndarray, form: LineFormat, parse: Parser, first_line: int, rejected: _Rejected
) -> Part:
    """Parse the lines with these ``indices`` one by one; return (indices of the valid lines, their rows).

    ``original_lines`` are the lines as in the file; the first one is line ``first_line`` of the file. Lines that
    ``parse`` cannot read are added to ``rejected``, with their line numbers in the file. Blank lines are skipped.
    """
    valid_indices, row_values = [], []
    for line_index in indices.tolist():
        line = original_lines[line_index].as_py()
        line_fields = form.fields(line)
        if not line_fields:
            continue
        try:
            row_values.append(tuple(parse(line_fields)))
            valid_indices.append(line_index)
        except (ValueError, OverflowError) as error:
            rejected.add(first_line + line_index, UNREADABLE, str(error), line)
    columns = zip(*row_values, strict=True) if row_values else ((),) * len(form.columns)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, form.schema.types, strict=True)]
    return np.array(valid_indices, np.int64), pa.table(arrays, form.schema)


def _end_last_line(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"


def _normalize(data: bytes, form: LineFormat) -> bytes:
    """Return ``data`` with tabs and no-break spaces replaced by blanks, and decimal commas by points.

    A character is not replaced if it separates the fields of this format, or if it can be part of a field's text. The
    result ends in a newline.
    """
    data = _end_last_line(data)
    if form.separator is None and not form.has_text and b"\xa0" in data:
        data = data.replace(b"\xc2\xa0", b" ").replace(b"\xa0", b" ")
    if form.separator is None and b"\t" in data:
        data = data.replace(b"\t", b" ")
    if form.separator != b"," and not form.has_text and b"," in data:
        data = data.replace(b",", b".")
    return data


def _split_lines(text: bytes) -> pa.Array:
    """Return the lines of a text, each with its newline, as an Arrow array that shares the bytes of ``text``."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10).astype(np.int32) + 1
    offsets = np.concatenate((np.zeros(1, np.int32), ends), dtype=np.int32)
    return pa.BinaryArray.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _parse_fast(lines: pa.Array, indices: np.ndarray, form: LineFormat) -> tuple[list[Part], np.ndarray]:
    """Parse the lines at ``indices`` with `pyarrow.csv`, many at once, if they match the format's pattern.

    Return ([(indices of parsed lines, their rows), ...], indices of the lines that must be parsed one by one).
    """
    parsed_parts: list[Part] = []
    if not form.fast:
        return parsed_parts, indices
    preparations: list[Callable[[pa.Array], pa.Array]] = [lambda text: text]
    if form.group is not None:
        index, field_count = form.group
        grouped_pattern = (
            rf"^((?:[0-9]+ ){{{index}}}[0-9]{{1,3}}) ([0-9]{{3}})((?: [^ \n]+){{{field_count - index - 1}}}\n)$"
        )
        preparations.append(lambda text: pc.replace_substring_regex(text, grouped_pattern, r"\1\2\3"))
    for prepare in preparations:
        if not len(indices):
            break
        prepared_lines = prepare(lines if len(indices) == len(lines) else lines.take(pa.array(indices)))
        is_matching = pc.match_substring_regex(prepared_lines, form.pattern)
        is_read = is_matching.to_numpy(zero_copy_only=False)
        if is_read.any():
            parsed_rows = _read_fast(prepared_lines if is_read.all() else prepared_lines.filter(is_matching), form)
            if parsed_rows is not None:
                parsed_parts.append((indices[is_read], parsed_rows))
                indices = indices[~is_read]
    return parsed_parts, indices


def _read_fast(lines: pa.Array, form: LineFormat) -> pa.Table | None:
    """Parse lines with `pyarrow.csv`; return their table of rows, or None if any line cannot be read."""
    _, offsets, text_buffer = lines.buffers()
    first_B = np.frombuffer(offsets, np.int32)[lines.offset]
    end_B = np.frombuffer(offsets, np.int32)[lines.offset + len(lines)]
    length_B = int(end_B - first_B)
    stored_columns = [field_format.column for field_format in form.fast if field_format.column]
    column_names = [field_format.column or f"({index})" for index, field_format in enumerate(form.fast)]
    try:
        parsed_table = csv.read_csv(
            pa.BufferReader(text_buffer.slice(int(first_B), length_B)),
            read_options=csv.ReadOptions(use_threads=False, block_size=length_B + 1, column_names=column_names),
            parse_options=csv.ParseOptions(
                delimiter=(form.separator or b" ").decode(), quote_char=False, double_quote=False, escape_char=False
            ),
            convert_options=csv.ConvertOptions(
                column_types={
                    field_format.column: field_format.type for field_format in form.fast if field_format.column
                },
                include_columns=stored_columns,
                null_values=[],
                strings_can_be_null=False,
                timestamp_parsers=[csv.ISO8601, "%Y-%m-%d_%H.%M.%S"],
            ),
        )
    except pa.ArrowInvalid:
        return None
    return (
        form.finish(parsed_table).select(form.schema.names).cast(form.schema)
        if len(parsed_table) == len(lines)
        else None
    )


def _join_parts(parts: list[Part], schema: pa.Schema) -> Part:
    """Join parts of a table, each (indices of lines, their rows), into one part in the order of the lines."""
    if not parts:
        return np.zeros(0, np.int64), schema.empty_table()
    if len(parts) == 1:
        return parts[0]
    indices = np.concatenate([lines for lines, _ in parts])
    line_order = np.argsort(indices, kind="stable")
    return indices[line_order], pa.concat_tables([rows for _, rows in parts]).take(
        pa.array(line_order)
    ).combine_chunks()


def _reject_broken(
    rows: pa.Table,
    lines_of_rows: np.ndarray,
    checks: Mapping[str, str],
    original_lines: pa.Array,
    first_line: int,
    rejected: _Rejected,
) -> pa.Table:
    """Return the rows that meet all conditions of ``checks``, and add the lines of all other rows to ``rejected``.

    ``checks`` is {reason: condition}. ``original_lines`` are the lines as in the file; the first one is line
    ``first_line`` of the file. ``lines_of_rows`` has, for each row, the index of its line in ``original_lines``. The
    entry of a rejected line has the rule (`rule_of`) of the first condition that the row does not meet, and the reasons
    of all conditions that it does not meet.
    """
    is_broken = broken_rules(rows, checks)
    is_wrong = is_broken.any(axis=0)
    if not is_wrong.any():
        return rows
    wrong_rows = np.flatnonzero(is_wrong)
    rules = list(checks)
    rule_names = [rule_of(rule) for rule in rules]
    for index, row in zip(wrong_rows.tolist(), rows.take(pa.array(wrong_rows)).to_pylist(), strict=True):
        rules_broken = np.flatnonzero(is_broken[:, index]).tolist()
        reason = "; ".join(rules[number].format(**row) for number in rules_broken)
        line = int(lines_of_rows[index])
        rejected.add(first_line + line, rule_names[rules_broken[0]], reason, original_lines[line].as_py())
    return rows.filter(pa.array(~is_wrong))


def rule_of(reason: str) -> str:
    """Return the name under which lines with this ``reason`` are counted together, whatever values they have.

    Each {column} in the reason is replaced by "…": "length {length_B}" gives "length …".
    """
    return "".join(text + ("" if name is None else "…") for text, name, *_ in Formatter().parse(reason))


def broken_rules(rows: pa.Table, checks: Mapping[str, str]) -> np.ndarray:
    """Return a bool array (conditions, rows) that is True where a row breaks a condition.

    ``checks`` is {reason: condition in SQL}. A condition counts as broken if it is NULL because a value is missing.
    """
    import duckdb

    selected_columns = ", ".join(
        f"({check}) IS NOT TRUE AS broken_{number}" for number, check in enumerate(checks.values())
    )
    with duckdb.connect(":memory:", config={"threads": 1}) as database:
        database.register("log_rows", rows)
        return np.array(list(database.sql(f"SELECT {selected_columns} FROM log_rows").fetchnumpy().values()), bool)
