"""Log formats that a user defines: each line has fields between separators, each field a named column of some kind."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets import fields as read
from workbench.datasets import formats
from workbench.datasets.chunks import broken_rules
from workbench.datasets.formats import FLOAT, INT, TEXT, Field, LineFormat, Parser
from workbench.errors import DataError
from workbench.suggestion import meant


class Kind(NamedTuple):
    """A kind of column, such as "int" or "unix_s".

    read     function that converts one field, for lines that are read one by one
    fast     function from a column's name to the `Field` with which many lines are converted at once
    type     Arrow type of the values
    divisor  number by which values that ``fast`` reads are divided to get seconds, such as 1000; None: no division
    """

    read: Callable[[bytes], Any]
    fast: Callable[[str], Field]
    type: pa.DataType
    divisor: float | None = None


KINDS: dict[str, Kind] = {
    "int": Kind(read.signed, formats.signed, INT),
    "float": Kind(read.decimal, formats.decimal, FLOAT),
    "str": Kind(read.text, formats.word, TEXT),
    "node": Kind(read.node, formats.node, INT),
    "unix_s": Kind(read.decimal, formats.decimal, FLOAT),
    "unix_ms": Kind(read.milliseconds, formats.whole, FLOAT, 1e3),
    "iso": Kind(read.iso, formats.iso, FLOAT, 1e6),
}
_IS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class LogFormat(LineFormat):
    """A format of lines of text: ``LogFormat("mine", {"time_s": "unix_s", "node": int, "temperature_C": float})``.

    name        name of the format in messages
    columns     {column: kind} in the order of the fields. Kinds: int, float, str; "node", a number from 0; "unix_s" and
                "unix_ms", Unix time in seconds or whole milliseconds; "iso", a date and time in ISO 8601, UTC if it has
                no offset. Times become seconds. None: skip the field
    separator   the character between fields, such as "," or a tab; None: blanks
    header      number of lines at the top of a file before the rows (True: one)
    checks      {reason: condition}: a row is rejected if the condition, which is SQL over the columns, is not true. The
                reason may contain values: {"voltage_V is {voltage_V}": "voltage_V BETWEEN 1 AND 4"}

    Decimal commas are accepted unless the comma is the separator. Quotes have no special meaning. Raises DataError for
    an unknown kind, or a condition that is not valid SQL.
    """

    _kinds: Mapping[str, str | None]

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        separator: str | None = None,
        header: int = 0,
        checks: Mapping[str, str] | None = None,
    ) -> None:
        kinds = {column: None if kind is None else _find_kind(column, kind) for column, kind in columns.items()}
        stored_kinds = {column: kind for column, kind in kinds.items() if kind is not None}
        if not stored_kinds:
            raise DataError(
                f"log format {name} has no column with a kind; give at least one column one of the kinds "
                f"{', '.join(KINDS)}"
            )
        if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '\r\n"0123456789'):
            raise DataError(
                f"the separator is {separator!r:.20}; it must be one ASCII character, but not a digit, a "
                f"quote or a line end; None means blanks"
            )
        super().__init__(
            name=name,
            columns={column: kind.type for column, kind in stored_kinds.items()},
            parser=functools.partial(_make_parser, tuple(kinds.values())),
            form=", ".join(columns),
            separator=None if separator is None else separator.encode(),
            header=int(header),
            checks=dict(checks or {}),
            fast=tuple(_make_fast_field(column, kind, separator) for column, kind in kinds.items()),
            finish=functools.partial(_divide_times, {column: kind.divisor for column, kind in stored_kinds.items()}),
        )
        # Of the kinds, only the types are fields of the format.
        object.__setattr__(self, "_kinds", {column: _kind_name(kind) for column, kind in columns.items()})
        self._try_checks()

    def to_json(self) -> str:
        """Return this format as JSON, for the option ``format`` of the Spark data source "workbench.log"."""
        document = {
            "name": self.name,
            "columns": self._kinds,
            "separator": None if self.separator is None else self.separator.decode(),
            "header": self.header,
            "checks": self.checks,
        }
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> LogFormat:
        """Return the format that `to_json` has written. Raises DataError for another text."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{text!r:.60} is not the JSON of a LogFormat ({error}); use to_json() of one") from None

    def _try_checks(self) -> None:
        """Try the checks' SQL conditions on an empty table, to report an invalid condition before a log is read."""
        import duckdb

        for reason, condition in self.checks.items():
            try:
                broken_rules(self.schema.empty_table(), {reason: condition})
                reason.format(**dict.fromkeys(self.columns, 0))
            except (duckdb.Error, KeyError, IndexError, ValueError) as error:
                message = str(error).partition("\n")[0]
                raise DataError(f"the condition {condition!r} of check {reason!r} is not valid: {message}") from None


def _kind_name(kind: Any) -> Any:
    """Return the name of a kind of column: ``kind`` is the name itself, or a type of Python such as int.

    None, for a field to be skipped, stays None.
    """
    return kind.__name__ if isinstance(kind, type) else kind


def _find_kind(column: str, kind: Any) -> Kind:
    name = _kind_name(kind)
    if not _IS_NAME.fullmatch(str(column)):
        raise DataError(f"the column name is {column!r:.40}; it must consist of letters, digits and _")
    if name not in KINDS:
        raise DataError(
            f"column {column} is of kind {name!r:.40}{meant(str(name), KINDS)}; kinds are {', '.join(KINDS)}"
        )
    return KINDS[name]


def _make_fast_field(column: str, kind: Kind | None, separator: str | None) -> Field:
    if kind is None or kind.type == TEXT:
        return formats.word("" if kind is None else column, separator or "")
    field = kind.fast(column)
    return (
        field if separator is None else field._replace(pattern=field.pattern.replace("T", "[T ]"))
    )  # of date and time


def _make_parser(kinds: tuple[Kind | None, ...]) -> Parser:
    """Return a function that converts a line's fields to values of these kinds, and skips fields of kind None."""

    def parse(fields: list[bytes]) -> list[Any]:
        pairs = zip(kinds, read.exactly(fields, len(kinds)), strict=True)
        return [kind.read(field) for kind, field in pairs if kind is not None]

    return parse


def _divide_times(divisors: Mapping[str, float | None], table: pa.Table) -> pa.Table:
    """Divide the columns of times by their ``divisors`` ({column: divisor or None}), so that all are in seconds."""
    for index, (column, divisor) in enumerate(divisors.items()):
        if divisor is not None:
            times = pc.cast(pc.cast(table[column], INT), FLOAT)
            table = table.set_column(index, column, pc.divide(times, divisor))
    return table
