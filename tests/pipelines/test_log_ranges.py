"""Byte ranges of logs: any cut gives the rows, reasons and line numbers of reading the file as a whole."""

import gzip

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from tests.pipelines.test_logs import HEADER, PACKETS
from workbench import pipelines
from workbench.datasets import chunks
from workbench.datasets.loaders import frame_of
from workbench.errors import DataError
from workbench.pipelines.logs import ranges, source
from workbench.pipelines.logs.reading import known_format

LINES = st.sampled_from([
    b"1;2.5", b"22;3", b"3;7", b"0;1", b"x", b"1;2;3", b"", b" ", b"\r", b"4;1\r", b"5;1,5", b"\xff", b"a" * 70,
])  # fmt: skip
CONTENTS = st.tuples(st.lists(LINES, min_size=1, max_size=12), st.sampled_from([b"", b"\n", b"\n\n"])).map(
    lambda parts: b"\n".join(parts[0]) + parts[1]
)
# The checks are SQL, which takes most of the time.
COLUMNS, CHECKS = {"node": "node", "value": float}, {"value {value:.1f}": "value < 5"}
FORMATS = [
    pipelines.LogFormat("own", COLUMNS, ";", header=header, checks=CHECKS if header == 1 else {}) for header in range(3)
]


def read_in_ranges(path, form, range_B, block_B):
    """Return (rows, rejected lines) of a file, read range by range as by Spark's tasks."""
    rows, rejected, lines_before = [form.schema.empty_table()], [chunks.REJECTED.empty_table()], 0
    for byte_range in ranges.ranges_of(str(path), form, range_B):
        for chunk in ranges.read_range(byte_range, form, block_B):
            rows.append(chunk.rows)
            rejected.append(ranges.shift_lines(chunk.rejected, lines_before))
        if byte_range.end_B is not None:
            lines_before += ranges.count_lines(byte_range, block_B)
    return pa.concat_tables(rows), pa.concat_tables(rejected)


def read_by_source(path, form, table, range_B):
    """Return the rows or the rejected lines that the data source yields, without Spark."""
    options = {"path": str(path), "format": form, "table": table, "range_MB": str(range_B / (1 << 20))}
    reader = source.LogSource(options).reader(None)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return pa.Table.from_batches(batches) if batches else None


def check_ranges(path, form, range_B, block_B):
    """Compare a file that is read in ranges with the file as a whole, or check that both raise an error."""
    try:
        whole = pipelines.read_log(path, form)
    except DataError:
        with pytest.raises(DataError):
            read_in_ranges(path, form, range_B, block_B)
        return
    rows, rejected = read_in_ranges(path, form, range_B, block_B)
    pd.testing.assert_frame_equal(frame_of([rows]), whole.rows.drop(columns="file"))
    pd.testing.assert_frame_equal(frame_of([rejected]), whole.rejected.drop(columns="file"))
    text = form.to_json() if isinstance(form, pipelines.LogFormat) else form.name
    for table, expected in (("rows", whole.rows), ("rejected", whole.rejected)):
        table_of_source = read_by_source(path, text, table, range_B)
        if table_of_source is None:
            assert expected.empty
        else:
            frame = frame_of([table_of_source])
            pd.testing.assert_frame_equal(frame[list(expected)], expected)


@settings(max_examples=examples(300))
@given(CONTENTS, st.sampled_from(FORMATS), st.integers(1, 60), st.integers(1, 60))
def test_ranges_of_any_size_give_the_whole_log(tmp_path_factory, content, form, range_B, block_B):
    path = tmp_path_factory.getbasetemp() / "own.log"
    path.write_bytes(content)
    check_ranges(path, form, range_B, block_B)


@pytest.mark.parametrize("lines", [[HEADER, *PACKETS], PACKETS, ["cut", *PACKETS]])
@pytest.mark.parametrize("range_B", [111, 700, pytest.param(50, marks=pytest.mark.family)])
def test_a_mercator_log_with_or_without_its_header_is_read_in_ranges(tmp_path, lines, range_B):
    path = tmp_path / "raw.csv"
    path.write_text("\n".join(lines))
    check_ranges(path, known_format("mercator"), range_B, 300)


def test_an_archive_and_a_format_that_depends_on_earlier_lines_are_one_range(tmp_path):
    archive, links = tmp_path / "raw.csv.gz", tmp_path / "connectivity.txt"
    archive.write_bytes(gzip.compress("\n".join([HEADER, *PACKETS]).encode()))
    links.write_text("".join(f"{a} {b} 0.5\n" for a in range(20) for b in (a, a + 1, a + 1)))
    for path, name in ((archive, "mercator"), (links, "intel-connectivity")):
        form = known_format(name)
        assert len(ranges.ranges_of(str(path), form, 10)) == 1
        check_ranges(path, form, 10, 50)


def test_only_the_beginning_of_a_file_is_read_to_cut_it(tmp_path, monkeypatch):
    path = tmp_path / "own.log"
    path.write_bytes(b"1;2\n" * 1000)
    monkeypatch.setattr(ranges, "CHECKED_B", 100)
    read_B = []
    monkeypatch.setattr(
        ranges, "chunks", lambda *of: (read_B.append(len(piece.data)) or piece for piece in chunks.chunks(*of))
    )
    cut = ranges.ranges_of(str(path), FORMATS[0], 500)
    assert [(byte_range.start_B, byte_range.end_B) for byte_range in cut] == [
        (start, start + 500) for start in range(0, 4000, 500)
    ]
    assert read_B == [100]


def test_a_file_that_is_not_regular_or_has_an_endless_line_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "own.log"
    path.write_bytes(b"1;2\n1;" + b"2" * 100 + b"\n")
    cut = ranges.ranges_of(str(path), FORMATS[0], 20)
    monkeypatch.setattr(ranges, "LONGEST_LINE_B", 50)
    with pytest.raises(DataError, match=r"own.log has a line that is longer than"):
        list(ranges.read_range(cut[0], FORMATS[0]))
    monkeypatch.setattr(ranges, "size_B", lambda name: 0)
    with pytest.raises(DataError, match="is not a regular file"):
        ranges.ranges_of(str(path), FORMATS[0])
    path.unlink()
    with pytest.raises(DataError, match="cannot be read by a task of Spark.*No such file"):
        list(ranges.read_range(cut[0], FORMATS[0]))


@pytest.mark.parametrize("form", [
    pipelines.LogFormat("a", {"time_s": "iso", "node": "node", "skipped": None, "text": str, "n": int}, "\t", header=2),
    FORMATS[1],
])  # fmt: skip
def test_a_format_equals_the_one_that_is_read_from_its_json(form):
    again = pipelines.LogFormat.from_json(form.to_json())
    assert again.to_json() == form.to_json()
    assert (again.schema, again.pattern, again.header, again.checks) == (
        form.schema,
        form.pattern,
        form.header,
        form.checks,
    )


@pytest.mark.parametrize(("options", "sentence"), [
    ({"path": "a"}, "workbench.log has no format; use .* mercator"),
    ({"path": "a", "format": "mercato"}, "unknown log format 'mercato' .did you mean mercator"),
    ({"path": "a", "format": '{"a": 1}'}, "is not the JSON of a LogFormat .*to_json"),
    ({"path": "a", "format": '{"name": "a", "columns": {"b": "itn"}}'}, "column b is of kind 'itn'"),
    ({"path": "a", "format": "mercator", "table": "reject"}, "the option 'table' is 'reject' .did you mean rejected"),
    ({"path": "a", "format": "mercator", "range_MB": "0"}, "the option 'range_MB' is '0'; it must be a number"),
    ({"format": "mercator"}, "workbench.log has no path"),
    ({"path": "no/*.csv", "format": "mercator"}, "no file matches"),
])  # fmt: skip
def test_invalid_options_are_refused_in_a_sentence(options, sentence):
    with pytest.raises(DataError, match=sentence):
        source.LogSource(options).reader(None)
