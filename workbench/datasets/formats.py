"""The formats of logs: for each, a parser of single lines and, for plain lines, a fast path.

Theory of operation
    A format's parser takes the fields of one line and returns a row's values, or raises ValueError with the reason why
    the line is not a row. The parser defines the format. A format may also have a fast path: a pattern for each field.
    The patterns are so strict that `pyarrow.csv` reads the same values as the parser from every line that matches. A
    line that does not match may still be valid, so the parser reads it (`chunks`).

    `checks` apply to rows that can be read: {reason: condition that a good row meets}. Conditions are SQL over the
    columns; reasons may quote values of the row: {"length {length_B} of {sent_length_B}": "length_B = sent_length_B"}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets import fields as read

Parser = Callable[[list[bytes]], Iterable[Any]]
FLOAT, INT, TEXT = pa.float64(), pa.int64(), pa.string()

# Valid dates from 1900 to 2099.
_DATE = (
    "(?:(?:19|20)[0-9]{2}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:(?:19|20)(?:0[48]|[2468][048]|[13579][26])|2000)-02-29)"
)
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_TIME = rf"{_HOUR}:{_SIXTY}:{_SIXTY}(?:\.[0-9]{{1,6}})?"
_WHOLE = "[0-9]{1,15}"
_DECIMAL = r"-?[0-9]{1,12}(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?"


class Field(NamedTuple):
    """A field of a log's line, for the parsing of many lines at once.

    ``column`` is the column that stores the field ("" to skip it), ``pattern`` the regular expression that it must
    match, ``type`` its Arrow type.
    """

    column: str
    pattern: str
    type: pa.DataType


def date(column: str) -> Field:
    return Field(column, _DATE, pa.date32())


def time(column: str) -> Field:
    return Field(column, _TIME, pa.time64("us"))


def iso(column: str) -> Field:
    return Field(column, f"{_DATE}T{_TIME}", pa.timestamp("us"))


def dotted(column: str) -> Field:
    return Field(column, rf"{_DATE}_{_HOUR}\.{_SIXTY}\.{_SIXTY}", pa.timestamp("s"))


def whole(column: str) -> Field:
    return Field(column, _WHOLE, INT)


def signed(column: str) -> Field:
    return Field(column, f"-?{_WHOLE}", INT)


def node(column: str) -> Field:
    return Field(column, "[0-9]{1,9}", INT)


def byte(column: str) -> Field:
    return Field(column, "(?:[01]?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])", INT)


def decimal(column: str) -> Field:
    return Field(column, _DECIMAL, FLOAT)


def eui64(column: str) -> Field:
    return Field(column, "[0-9a-f]{2}(?:-[0-9a-f]{2}){7}", TEXT)


def word(column: str, between: str = "") -> Field:
    """Return the `Field` of a text of printable ASCII without blanks and without ``between``, the line's separator.

    If ``column`` is "", the field is read but not stored.
    """
    printable_characters = map(chr, range(33, 127))
    allowed_characters = "".join(re.escape(character) for character in printable_characters if character != between)
    return Field(column, f"[{allowed_characters}]{'*' if between else '+'}", TEXT)


def _keep_table(table: pa.Table) -> pa.Table:
    return table


@dataclass(frozen=True)
class LineFormat:
    """A format of the lines of a log.

    name        name of the format in messages
    columns     {name: type} of the rows
    parser      function that returns a new parser for a file; the parser converts a line's fields to a row's values
    form        a text that lists the fields of a line, for messages
    separator   the bytes between fields; None: blanks of all kinds
    header      number of header lines at the top of a file
    has_optional_header  whether a file may lack the header; if False, a file that begins with rows raises an error
    checks      {reason for rejecting a row: SQL condition that each good row meets}
    fast        the fields of lines that `pyarrow.csv` may parse, many at once; empty: the parser reads all lines
    finish      a function that converts a table read by `pyarrow.csv` to a table with ``columns``
    group       (index, count): in a line of ``count`` fields, the field at ``index`` may be in groups of three digits
    is_whole    whether the parser depends on earlier lines, so that parts of a file cannot be read in parallel
    """

    name: str
    columns: Mapping[str, pa.DataType]
    parser: Callable[[], Parser]
    form: str
    separator: bytes | None = None
    header: int = 0
    has_optional_header: bool = False
    checks: Mapping[str, str] = field(default_factory=dict)
    fast: tuple[Field, ...] = ()
    finish: Callable[[pa.Table], pa.Table] = _keep_table
    group: tuple[int, int] | None = None
    is_whole: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return pa.schema(list(self.columns.items()))

    @property
    def has_text(self) -> bool:
        """True if any column contains text.

        If so, a comma is not read as a decimal comma, because it may be part of a text. The byte A0 is not read as a
        no-break space (Latin-1), because it may be part of a UTF-8 character.
        """
        return TEXT in self.columns.values()

    @property
    def pattern(self) -> str:
        """The regular expression of lines that `pyarrow.csv` may parse, including the newline."""
        separator_pattern = re.escape((self.separator or b" ").decode())
        return "^" + separator_pattern.join(field_format.pattern for field_format in self.fast) + r"\r?\n$"

    def fields(self, line: bytes) -> list[bytes]:
        """Return the fields of a line; a blank line gives an empty list. A no-break space separates like a blank."""
        if self.separator is not None:
            return [text.strip() for text in line.split(self.separator)] if line.strip() else []
        return line.split() if self.has_text else line.replace(b"\xc2\xa0", b" ").replace(b"\xa0", b" ").split()


# Known formats


def _parse_ulb_reading(fields: list[bytes]) -> tuple[float, ...]:
    time_ms, node, sequence, *measured_fields = read.join_groups(fields, 9, 2)
    return (read.milliseconds(time_ms), read.node(node), read.whole(sequence), *map(read.decimal, measured_fields))


def _parse_ulb_neighbor(fields: list[bytes]) -> tuple[float, ...]:
    time_ms, packet, round_number, node, source, quality, rssi = read.join_groups(fields, 7, 2)
    logged_quality = read.byte(quality)
    ids = (read.whole(packet), read.whole(round_number), read.node(node), read.node(source))
    return (read.milliseconds(time_ms), *ids, _to_lqi(logged_quality), read.byte(rssi), _to_power_dBm(logged_quality))


def _to_lqi(logged: int) -> int:
    return 383 - logged if logged > 128 else 128 - logged


def _to_power_dBm(logged: int) -> int:
    return (logged - 256 if logged > 127 else logged) - 45


def _parse_intel_reading(fields: list[bytes]) -> tuple[float, ...]:
    date, time, epoch, node, *measured_fields = read.exactly(fields, 8)
    return (read.moment(date, time), read.whole(epoch), read.node(node), *map(read.decimal, measured_fields))


def _make_intel_link_parser() -> Parser:
    known_links = set()

    def parse(fields: list[bytes]) -> tuple[float, ...]:
        transmitter, receiver, probability = read.exactly(fields, 3)
        link, pdr = (read.node(transmitter), read.node(receiver)), read.decimal(probability)
        if link[0] == link[1] or link in known_links or not 0 <= pdr <= 1:
            raise ValueError(
                "a line must be a link between two nodes, not listed before, with a probability from 0 to 1"
            )
        known_links.add(link)
        return (*link, pdr)

    return parse


def _make_intel_position_parser() -> Parser:
    located_motes = set()

    def parse(fields: list[bytes]) -> tuple[float, ...]:
        mote, x, y = read.exactly(fields, 3)
        node, position = read.node(mote), (read.decimal(x), read.decimal(y))
        if node in located_motes:
            raise ValueError(f"mote {node} has a position in an earlier line already")
        located_motes.add(node)
        return (node, *position)

    return parse


def _parse_mercator_packet(fields: list[bytes]) -> tuple[Any, ...]:
    time, receiver, channel, length, rssi, crc, expected, transmitter, *sender_fields = read.exactly(fields, 15)
    transaction, packet, sent, power, gap, sent_length, fill_byte = sender_fields
    reception_values = (
        read.dotted_moment(time),
        read.eui64(receiver),
        *map(read.whole, (channel, length)),
        read.signed(rssi),
    )
    check_values = (read.whole(crc), read.whole(expected), read.eui64(transmitter))
    sender_values = (
        *map(read.whole, (transaction, packet, sent)),
        read.signed(power),
        *map(read.whole, (gap, sent_length)),
        read.text(fill_byte),
    )
    return (*reception_values, *check_values, *sender_values)


def _to_unix_s(microseconds: pa.Array) -> pa.Array:
    """Convert whole microseconds since 1970 to seconds, with the same floats as `datetime.timestamp`."""
    return pc.divide(pc.cast(microseconds, FLOAT), 1e6)


def _convert_milliseconds(table: pa.Table) -> pa.Table:
    time_s = pc.divide(pc.cast(table.column(0), FLOAT), 1e3)
    return table.set_column(0, "time_s", time_s)


def _finish_neighbors(table: pa.Table) -> pa.Table:
    table = _convert_milliseconds(table)
    logged_quality = table["logged"]
    lqi = pc.subtract(pc.if_else(pc.greater(logged_quality, 128), 383, 128), logged_quality)
    power = pc.subtract(
        pc.if_else(pc.greater(logged_quality, 127), pc.subtract(logged_quality, 256), logged_quality), 45
    )
    index = table.column_names.index("logged")
    return table.set_column(index, "lqi", lqi).append_column("power_dBm", power)


def _finish_intel(table: pa.Table) -> pa.Table:
    days = pc.cast(pc.cast(table["date"], pa.int32()), INT)
    microseconds = pc.add(pc.multiply(days, 86_400_000_000), pc.cast(table["time"], INT))
    return table.remove_column(0).set_column(0, "time_s", _to_unix_s(microseconds))


def _finish_mercator(table: pa.Table) -> pa.Table:
    return table.set_column(0, "time_s", pc.cast(pc.cast(table["time_s"], INT), FLOAT))


_ULB_VALUES = ("internal_temperature_C", "voltage_V", "humidity_pct", "temperature_C", "par", "tsr")
_INTEL_VALUES = ("temperature_C", "humidity_pct", "light_lux", "voltage_V")

ULB_READINGS = LineFormat(
    "ulb-readings",
    {"time_s": FLOAT, "node": INT, "sequence": INT, **dict.fromkeys(_ULB_VALUES, FLOAT)},
    lambda: _parse_ulb_reading,
    "time in ms, node, sequence, temperature, voltage, humidity, temperature, PAR, TSR",
    fast=(whole("time_ms"), node("node"), whole("sequence"), *map(decimal, _ULB_VALUES)),
    finish=_convert_milliseconds,
    group=(2, 9),
)
ULB_NEIGHBORS = LineFormat(
    "ulb-neighbors",
    {"time_s": FLOAT, **dict.fromkeys(("packet", "round", "node", "source", "lqi", "rssi", "power_dBm"), INT)},
    lambda: _parse_ulb_neighbor,
    "time in ms, packet, round, node, source node, LQI, RSSI",
    fast=(
        *map(whole, ("time_ms", "packet", "round")),
        *map(node, ("node", "source")),
        *map(byte, ("logged", "rssi")),
    ),
    finish=_finish_neighbors,
    group=(2, 7),
)
INTEL_READINGS = LineFormat(
    "intel-readings",
    {"time_s": FLOAT, "epoch": INT, "node": INT, **dict.fromkeys(_INTEL_VALUES, FLOAT)},
    lambda: _parse_intel_reading,
    "date, time, epoch, mote, temperature, humidity, light, voltage",
    fast=(date("date"), time("time"), whole("epoch"), node("node"), *map(decimal, _INTEL_VALUES)),
    finish=_finish_intel,
)
INTEL_CONNECTIVITY = LineFormat(
    "intel-connectivity",
    {"transmitter": INT, "receiver": INT, "pdr": FLOAT},
    _make_intel_link_parser,
    "from, to, probability",
    is_whole=True,
)
INTEL_POSITIONS = LineFormat(
    "intel-positions",
    {"node": INT, "x_m": FLOAT, "y_m": FLOAT},
    _make_intel_position_parser,
    "mote, x in m, y in m",
    is_whole=True,
)
# The format of Mercator's loggers: a row for each received packet. Columns of rows that are not "expected" are guesses.
MERCATOR = LineFormat(
    "mercator",
    {
        "time_s": FLOAT, "receiver": TEXT, "channel": INT, "length_B": INT, "rssi_dBm": INT, "crc": INT,
        "expected": INT, "transmitter": TEXT, "transaction": INT, "packet": INT, "sent": INT, "power_dBm": INT,
        "gap_ms": INT, "sent_length_B": INT, "fill": TEXT,
    },
    lambda: _parse_mercator_packet,
    "time, receiver, channel, length, RSSI, crc, expected, sender, transaction, packet, packets sent, power, gap, "
    "length sent, fill byte",
    separator=b",",
    header=1,
    has_optional_header=True,  # No name of a column is a time, so a header is never a row.
    checks={
        "crc wrong": "crc = 1",
        "not expected": "expected = 1",
        "length {length_B} of {sent_length_B}": "length_B = sent_length_B",
        "packet counter {packet} of {sent}": "packet < sent",
        "channel {channel}": "channel BETWEEN 11 AND 26",
        "RSSI {rssi_dBm} dBm": "rssi_dBm < 0",
        "own packet": "transmitter <> receiver",
    },
    fast=(
        dotted("time_s"), eui64("receiver"), whole("channel"), whole("length_B"), signed("rssi_dBm"),
        whole("crc"), whole("expected"), eui64("transmitter"), whole("transaction"), whole("packet"),
        whole("sent"), signed("power_dBm"), whole("gap_ms"), whole("sent_length_B"), word("fill", ","),
    ),
    finish=_finish_mercator,
)  # fmt: skip
FORMATS = {
    log_format.name: log_format
    for log_format in (ULB_READINGS, ULB_NEIGHBORS, INTEL_READINGS, INTEL_CONNECTIVITY, INTEL_POSITIONS, MERCATOR)
}
