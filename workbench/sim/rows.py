"""The columns of a trace as numpy arrays, and selections of its rows, for metrics, explanations and views.

A text column is stored as an integer code for each row: an index into `Columns.words`, the column's distinct texts. So
rows of an event are selected by comparing small integers, and no method runs a Python step for each row of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import unique_inverse
from workbench.errors import DataError

NUMBERS = ("time_us", "node", "peer", "origin", "sequence", "value", "size_B")
TEXTS = ("event", "message", "detail")


class Row(NamedTuple):
    """A row of the trace; ``position`` is its row number in the table from which it was read."""

    position: int
    time_us: int
    node: int
    peer: int
    origin: int
    sequence: int
    value: int
    size_B: int
    event: str
    message: str
    detail: str


class _OnDemand(dict[str, Any]):
    """A dictionary whose values are computed by ``make(name)`` at first access."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._make(name)
        return value


class Columns:
    """The columns of a trace as arrays (rows,), each read at first access.

    ``numbers[name]``: a column of numbers. ``codes[name]``: a text column as indices into ``words[name]``, the list of
    its distinct texts. Raises DataError if the table lacks a column of a trace.
    """

    def __init__(self, trace: pa.Table) -> None:
        missing_names = [name for name in (*NUMBERS, *TEXTS) if name not in trace.column_names]
        if missing_names:
            raise DataError(
                f"this table has no column {missing_names[0]!r}, so it is not a trace; "
                "run a scenario with record='trace'"
            )
        codes_and_words = _OnDemand(lambda name: codes(trace.column(name)))
        self.rows = trace.num_rows
        self.numbers: Mapping[str, np.ndarray] = _OnDemand(lambda name: trace.column(name).to_numpy())
        self.codes: Mapping[str, np.ndarray] = _OnDemand(lambda name: codes_and_words[name][0])
        self.words: Mapping[str, list[str]] = _OnDemand(lambda name: codes_and_words[name][1])
        self._at: np.ndarray | None = None  # the position in the whole trace of each row, in a `part`
        self._rows_of: dict[tuple[int, ...], np.ndarray] = {}  # codes of events -> rows
        self._events: np.ndarray | None = None  # the codes of events, in a narrow type for fast comparison

    def part(self, rows: np.ndarray) -> Columns:
        """Return a `Columns` object that has only some rows of this table; ``rows``: their row numbers, ascending."""
        selection = copy(self)
        selection.rows, selection._at, selection._rows_of, selection._events = len(rows), self.in_trace(rows), {}, None
        selection.numbers = _OnDemand(lambda name: self.numbers[name][rows])
        selection.codes = _OnDemand(lambda name: self.codes[name][rows])
        return selection

    def in_trace(self, rows: np.ndarray) -> np.ndarray:
        """Convert row numbers of this table to row numbers of the whole trace.

        They differ if this table is a `part` of the trace.
        """
        return rows if self._at is None else self._at[rows]

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the column ``name``, an array (rows,) of numbers."""
        return self.numbers[name]

    # Rows by words

    def where(self, rows: np.ndarray | None = None, **equal: str | Iterable[str]) -> np.ndarray:
        """Return the row numbers, ascending, of the rows with the given texts: ``where(event="sent", message="data")``.

        ``event=("sent", "received")`` selects rows with either text. ``rows``: row numbers to search; by default all.
        """
        marks_of = {name: self._mark_codes(name, _as_set(words)) for name, words in equal.items()}
        if not all(marks.any() for marks in marks_of.values()):  # The words do not occur in the trace.
            return np.arange(0)
        if rows is None and "event" in marks_of:
            rows = self._find_event_rows(tuple(np.flatnonzero(marks_of.pop("event")).tolist()))
        rows = np.arange(self.rows) if rows is None else rows
        for name, marks in marks_of.items():
            rows = rows[marks[self.codes[name][rows]]]
        return rows

    def _find_event_rows(self, event_codes: tuple[int, ...]) -> np.ndarray:
        """Return the row numbers, ascending, of all rows whose event has one of ``event_codes``; results are cached."""
        if event_codes not in self._rows_of:
            code_column = self._event_codes()
            is_match = code_column == event_codes[0]
            for code in event_codes[1:]:
                is_match |= code_column == code  # faster than indexing with each row's code
            self._rows_of[event_codes] = np.flatnonzero(is_match)
        return self._rows_of[event_codes]

    def _event_codes(self) -> np.ndarray:
        if self._events is None:
            self._events = self.codes["event"].astype(np.uint8 if len(self.words["event"]) < 1 << 8 else np.int64)
        return self._events

    def _mark_codes(self, name: str, words: set[str]) -> np.ndarray:
        """Return for each code of the text column ``name`` whether its text is in ``words``; bool (codes,)."""
        return np.array([word in words for word in self.words[name]] or [False])

    def code(self, name: str, word: str) -> int:
        """Return the code of ``word`` in the text column ``name``; -1 if the word does not occur there."""
        words = self.words[name]
        return words.index(word) if word in words else -1

    def number_after(self, rows: np.ndarray, event: str) -> np.ndarray:
        """Count the rows with this ``event`` in intervals of the table that begin at the row numbers ``rows`` (r,).

        ``rows`` must ascend. Element i of the result, int64 (r,), is the count in [``rows[i]``, ``rows[i + 1]``); the
        last interval ends with the table.
        """
        code = self.code("event", event)
        if not len(rows) or code < 0:
            return np.zeros(len(rows), np.int64)
        return np.add.reduceat((self._event_codes() == code).view(np.uint8), rows, dtype=np.int64)

    # Words of rows

    def text(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return the texts at ``rows`` in the text column ``name``; an array (len(rows),) of str objects."""
        return np.array([*self.words[name], ""], dtype=object)[self.codes[name][rows]]

    def says(self, name: str, rows: np.ndarray, word: str) -> np.ndarray:
        """Return for each of ``rows`` whether the text in the column ``name`` equals ``word``; bool (len(rows),)."""
        return self._mark_codes(name, {word})[self.codes[name][rows]]

    def coded(self, name: str, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """Return (indices, words) for ``rows`` in the text column ``name``.

        ``words``: the distinct texts in these rows. ``indices`` (len(rows),): for each row, the index of its text in
        ``words``.
        """
        occurring_codes, word_index = unique_inverse(self.codes[name][rows])
        return word_index, [self.words[name][code] for code in occurring_codes.tolist()]

    def numbered(self, name: str, rows: np.ndarray, numbers: Mapping[str, int]) -> np.ndarray:
        """Return ``numbers[text]`` for the text of each of ``rows`` in the column ``name``; int64 (len(rows),).

        The result is -1 for a text that ``numbers`` does not contain.
        """
        number_of = np.array([numbers.get(word, -1) for word in self.words[name]] or [-1])
        return number_of[self.codes[name][rows]]

    # Columns of events

    def columns(self, event: str, *names: str) -> list[np.ndarray]:
        """Return the named columns, as arrays, at the rows with this ``event``.

        A text column is returned as indices into ``words[name]``.
        """
        rows = self.where(event=event)
        return [(self.codes if name in TEXTS else self.numbers)[name][rows] for name in names]

    def of(self, *events: str) -> list[Row]:
        """Return all rows whose event has one of these names, in the order of the table."""
        return self.listed(self.where(event=events))

    def listed(self, rows: np.ndarray) -> list[Row]:
        """Return the rows with the row numbers ``rows`` as `Row` objects."""
        return list(map(Row, rows.tolist(), *self._read_cells(rows, Row._fields[1:]))) if len(rows) else []

    def tuples(self, rows: np.ndarray, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield a tuple for each of ``rows``: the row's values in the named columns, as Python numbers and texts."""
        return zip(*self._read_cells(rows, names), strict=True)

    def _read_cells(self, rows: np.ndarray, names: Sequence[str]) -> Iterator[list[Any]]:
        for name in names:
            if name in TEXTS:
                words = self.words[name]
                yield [words[code] for code in self.codes[name][rows].tolist()]
            else:
                yield self.numbers[name][rows].tolist()


def _as_set(words: str | Iterable[str]) -> set[str]:
    return {words} if isinstance(words, str) else set(words)


def codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Return (codes, words) of a text column: its distinct texts ``words``, and ``codes`` (n,), indices into them."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # A single chunk has one dictionary. Copying the codes of a long trace takes as long as computing its layers.
    whole_column = column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
    if isinstance(whole_column, pa.ChunkedArray):  # as returned by older releases of pyarrow
        whole_column = (
            pa.concat_arrays(whole_column.chunks) if whole_column.num_chunks else pa.array([], whole_column.type)
        )
    words = ["" if word is None else str(word) for word in whole_column.dictionary.to_pylist()]
    indices = whole_column.indices
    if indices.null_count:
        indices = indices.fill_null(0)
    return indices.to_numpy(zero_copy_only=False), words
