"""A trace as numpy columns, read once: what the views compute with.

String columns of a trace are dictionary encoded, so an event is looked for by comparing small integers; nothing
here loops over rows. The rows of each event are found once, as everything begins with them.
"""

from collections.abc import Iterable
from copy import copy
from functools import cached_property

import numpy as np
import pyarrow as pa

from workbench.errors import DataError
from workbench.sim.columns import distinct

NUMBERS = ("time_us", "node", "peer", "origin", "sequence", "size_B", "value")
TEXTS = ("event", "message", "detail")


class Columns:
    """The columns of a trace: numbers as numpy arrays (rows,), texts as codes into ``words[name]``."""

    def __init__(self, trace: pa.Table) -> None:
        self.rows = trace.num_rows
        self._at: np.ndarray | None = None  # which row of the trace each row is, if they are some of them (`part`)
        self.numbers = {name: trace.column(name).to_numpy() for name in NUMBERS}
        self.codes: dict[str, np.ndarray] = {}
        self.words: dict[str, list[str]] = {}
        for name in TEXTS:
            self.codes[name], self.words[name] = _codes(trace.column(name))

    def part(self, rows: np.ndarray) -> "Columns":
        """The same with some rows alone; ``rows``: their numbers, ascending."""
        part = copy(self)
        for known in ("_found", "_short_codes"):
            part.__dict__.pop(known, None)
        part.rows, part._at = len(rows), self.in_trace(rows)
        part.numbers = {name: column[rows] for name, column in self.numbers.items()}
        part.codes = {name: codes[rows] for name, codes in self.codes.items()}
        return part

    def in_trace(self, rows: np.ndarray) -> np.ndarray:
        """Which rows of the trace some rows are."""
        return rows if self._at is None else self._at[rows]

    def __getitem__(self, name: str) -> np.ndarray:
        """A number column, shape (rows,)."""
        return self.numbers[name]

    def where(self, **equal: str | Iterable[str]) -> np.ndarray:
        """Row numbers, ascending, at which each named text column has one of the given words."""
        is_wanted = {name: self._is_one_of(name, _several(words)) for name, words in equal.items() if name != "event"}
        if not all(some.any() for some in is_wanted.values()):  # No row has such a word: none is looked at.
            return np.arange(0)
        rows = self._of_events(_several(equal["event"])) if "event" in equal else np.arange(self.rows)
        for name, wanted in is_wanted.items():
            rows = rows[wanted[self.codes[name][rows]]]
        return rows

    def number_after(self, rows: np.ndarray, event: str) -> np.ndarray:
        """How many rows of an event there are from each row, ascending, to the one before the next; (len(rows),)."""
        if not len(rows) or event not in self.words["event"]:
            return np.zeros(len(rows), np.int64)
        is_such = self._short_codes == self.words["event"].index(event)
        return np.add.reduceat(is_such.view(np.uint8), rows, dtype=np.int64)

    def _is_one_of(self, name: str, words: set[str]) -> np.ndarray:
        """Whether each code of a text column stands for one of some words; bool."""
        return np.array([word in words for word in self.words[name]] or [False])

    def text(self, name: str, rows: np.ndarray) -> np.ndarray:
        """The words of a text column at some rows, shape (len(rows),), dtype object."""
        words = np.array([*self.words[name], ""], dtype=object)
        return words[self.codes[name][rows]]

    def says(self, name: str, rows: np.ndarray, word: str) -> np.ndarray:
        """Whether a text column has a word at some rows; bool, shape (len(rows),)."""
        return self._is_one_of(name, {word})[self.codes[name][rows]]

    def coded(self, name: str, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """A text column at some rows as codes, shape (len(rows),), into the words that occur there."""
        occurring, codes = distinct(self.codes[name][rows])
        return codes, [self.words[name][code] for code in occurring.tolist()]

    def _of_events(self, events: set[str]) -> np.ndarray:
        known = [code for code, word in enumerate(self.words["event"]) if word in events]
        pieces = [self._of_event(code) for code in known]
        if len(pieces) == 1:
            return pieces[0]
        # A stable sort of ascending pieces merges them.
        return np.sort(np.concatenate(pieces), kind="stable") if pieces else np.arange(0)

    def _of_event(self, code: int) -> np.ndarray:
        """The rows of an event, looked for once; most runs have more kinds of events than anybody asks for."""
        if code not in self._found:
            self._found[code] = np.flatnonzero(self._short_codes == code)
        return self._found[code]

    @cached_property
    def _found(self) -> dict[int, np.ndarray]:
        return {}

    @cached_property
    def _short_codes(self) -> np.ndarray:
        """The codes of events in a type that is compared fast."""
        words = len(self.words["event"])
        return self.codes["event"].astype(np.uint8 if words < 1 << 8 else np.int64)


def read(trace: pa.Table) -> Columns:
    """A trace as columns; DataError names the first column that is missing."""
    missing = [name for name in (*NUMBERS, *TEXTS) if name not in trace.column_names]
    if missing:
        raise DataError(
            f"this table has no column {missing[0]!r}, so it is no trace; run a scenario with record='trace'"
        )
    return Columns(trace)


def _several(words: str | Iterable[str]) -> set[str]:
    return {words} if isinstance(words, str) else set(words)


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # One piece has one dictionary. Copies of the codes of a long trace take as long as its layers.
    whole = column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # what older releases of pyarrow return
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    words = ["" if word is None else str(word) for word in whole.dictionary.to_pylist()]
    indices = whole.indices
    if indices.null_count:
        indices = indices.fill_null(0)
    return indices.to_numpy(zero_copy_only=False), words
