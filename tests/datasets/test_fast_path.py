"""The fast path of log formats reads the same rows as the format's parser."""

import dataclasses

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.families import examples
from workbench.datasets import formats
from workbench.datasets.chunks import UNREADABLE, chunks, read_chunk, rule_of

LINES = {
    "ulb-readings": b"1163438041250 20 1 21,21 2,81 51,53 22,08 20 28",
    "ulb-neighbors": b"1163438002000 3 17 16 13 245 234",
    "intel-readings": b"2004-02-29 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397",
    "mercator": b"2014-11-06_01.30.37,14-15-92-00-12-91-cb-fd,11,100,-70,1,1,14-15-92-00-12-91-ca-eb,"
    b"1,0,100,0,100,100,0x0a",
}
FIELDS = [
    b"0", b"00", b"7", b"007", b"-1", b"+1", b"255", b"256", b"999", b"1 012", b"1\xa0012", b"1\xc2\xa0012 345",
    b"2147483648", b"123456789012345", b"1234567890123456", b"1,5", b"1.5", b"-0.0", b"1e3", b"1E-07",
    b"123456789012.123456789012345", b".5", b"5.", b"nan", b"inf", b"", b"\t", b"\r", b"\x00", b"\xff", b'"',
    b"2004-02-29", b"2003-02-29", b"1900-02-29", b"2000-02-29", b"2004-04-31", b"23:59:59.5", b"24:00:00", b"10:00",
    b"10:00:00.1234567", b"2014-11-31_01.30.37", b"2014-11-30_24.30.37", b"14-15-92-00-12-91-CB-FD", b"0x0a",
    b"\xc3\xa9", b"N/A", b"1_0",
]  # fmt: skip
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\n\n", b"\t\r\n"])


def slow(form):
    """Return the same format without its fast path: every line goes to the parser."""
    return dataclasses.replace(form, fast=())


def read(form, data, first_line=7):
    return read_chunk(data, form, form.parser(), first_line)


def assert_same(form, data):
    fast, plain = read(form, data), read(slow(form), data)
    assert fast.rows.equals(plain.rows)
    assert fast.rejected.to_pylist() == plain.rejected.to_pylist()
    assert fast.lines == plain.lines
    # 0.0 == -0.0, but they are not the same.
    assert str(fast.rows.to_pylist()) == str(plain.rows.to_pylist())


@st.composite
def damaged(draw, line, separator):
    """Draw a line with some fields replaced, dropped or added, and its line end."""
    fields = line.split(separator)
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(fields) - 1))
        new = draw(st.sampled_from([*FIELDS, None]) | st.from_regex(rb"-?[0-9]{1,16}(\.[0-9]{0,16})?", fullmatch=True))
        fields[index : index + 1] = [] if new is None else [new]
        if not fields:
            break
    return separator.join(fields) + draw(ENDS)


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_a_chunk_gives_the_same_rows_as_the_parser_line_by_line(name, data):
    form = formats.FORMATS[name]
    lines = data.draw(st.lists(damaged(LINES[name], form.separator or b" "), max_size=20))
    assert_same(form, b"".join(lines) + data.draw(st.sampled_from([b"", LINES[name], b"x"])))


@pytest.mark.parametrize("name", LINES)
def test_each_odd_field_in_each_column_is_read_as_by_the_parser(name):
    form = formats.FORMATS[name]
    separator = form.separator or b" "
    fields = LINES[name].split(separator)
    columns = range(len(fields))
    lines = [separator.join([*fields[:column], odd, *fields[column + 1 :]]) for odd in FIELDS for column in columns]
    assert_same(form, b"\n".join(lines))


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=15, deadline=None)
@given(text=st.binary(max_size=200))
@example(text=b"\xff\n\n\x00")
def test_any_bytes_are_rows_or_rejected_lines(name, text):
    assert_same(formats.FORMATS[name], text)


@pytest.mark.parametrize("name", LINES)
def test_plain_lines_take_the_fast_path(name):
    form = formats.FORMATS[name]
    calls = []
    part = read_chunk((LINES[name] + b"\n") * 50, form, calls.append, 7)
    assert len(part.rows) == 50 and calls == []


@pytest.mark.parametrize("blank", [b" ", b"\xa0", b"\xc2\xa0"])
def test_numbers_in_groups_of_three_digits_take_the_fast_path(blank):
    form = formats.FORMATS["ulb-readings"]
    data = (b"1163438041250 20 1%s012 21,21 2,81 51,53 22,08 20 28\n" % blank + LINES["ulb-readings"] + b"\n") * 3
    calls = []
    assert read_chunk(data, form, calls.append, 7).rows["sequence"].to_pylist() == [1012, 1] * 3
    assert calls == []


@pytest.mark.parametrize("size", [1, 10, 64, 1000])
def test_a_file_is_cut_at_line_ends_and_lines_keep_their_numbers(size, tmp_path):
    text = b"".join(b"%d%s\n" % (number, b"x" * (number * 7 % 90)) for number in range(40)) + b"no end"
    path = tmp_path / "log"
    path.write_bytes(text)
    pieces = list(chunks(path, size))
    assert b"".join(piece.data for piece in pieces) == text
    for piece in pieces:
        assert text[piece.start :].startswith(piece.data)
        assert piece.first_line == text[: piece.start].count(b"\n") + 1
        assert piece.data.endswith(b"\n") or piece is pieces[-1]


def test_rows_are_in_the_order_of_lines_on_both_paths():
    form = formats.FORMATS["ulb-neighbors"]
    lines = [
        b"1000  %d 17 16 13 245 234" % packet if packet % 3 else b"1000 %d 17 16 13 245 234" % packet
        for packet in range(20)
    ]
    part = read(form, b"\n".join(lines))
    assert part.rows["packet"].to_pylist() == list(range(20))


def test_a_rejected_line_is_reported_with_its_number_and_reason():
    good = LINES["mercator"]
    wrong = good.replace(b",100,-70,1,1,", b",37,-70,0,0,").replace(b",1,0,100,0,", b",1,212,100,0,")
    part = read(formats.FORMATS["mercator"], b"header is line 1\n%s\n%s\ncut,off\n" % (good, wrong), first_line=1)
    assert len(part.rows) == 1 and part.lines == 3
    reason = "crc wrong; not expected; length 37 of 100; packet counter 212 of 100"
    assert part.rejected.to_pylist() == [
        {"line": 3, "rule": "crc wrong", "reason": reason, "text": wrong.decode()[:120]},
        {"line": 4, "rule": UNREADABLE, "reason": "the line has 2 columns, not 15", "text": "cut,off"},
    ]


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("crc wrong", "crc wrong"),
        ("length {length_B} of {sent_length_B}", "length … of …"),
        ("{rssi_dBm:+d} dBm {{raw}}", "… dBm {raw}"),
    ],
)
def test_a_rule_is_named_by_its_reason_without_the_values_of_a_row(reason, rule):
    assert rule_of(reason) == rule
