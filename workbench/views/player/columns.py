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

NUMBERS = ("time_us", "node", "peer", "origin", "sequence", "size_B", "value")
TEXTS = ("event", "message", "detail")


class Columns:
    """The columns of a trace: numbers as numpy arrays (rows,), texts as codes into ``words[name]``."""

    at: np.ndarray  # which row of the trace each row is: all of them, or some (`part`)

    def __init__(self, trace: pa.Table) -> None:
        self.rows = trace.num_rows
        self.at = np.arange(self.rows)
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
        part.rows, part.at = len(rows), self.at[rows]
        part.numbers = {name: column[rows] for name, column in self.numbers.items()}
        part.codes = {name: codes[rows] for name, codes in self.codes.items()}
        return part

    def __getitem__(self, name: str) -> np.ndarray:
        """A number column, shape (rows,)."""
        return self.numbers[name]

    def where(self, **equal: str | Iterable[str]) -> np.ndarray:
        """Row numbers, ascending, at which each named text column has one of the given words."""
        rows = self._of_events(_several(equal["event"])) if "event" in equal else np.arange(self.rows)
        for name, words in equal.items():
            if name == "event":
                continue
            wanted = _several(words)
            is_wanted = np.array([word in wanted for word in self.words[name]] or [False])
            rows = rows[is_wanted[self.codes[name][rows]]]
        return rows

    def text(self, name: str, rows: np.ndarray) -> np.ndarray:
        """The words of a text column at some rows, shape (len(rows),), dtype object."""
        words = np.array([*self.words[name], ""], dtype=object)
        return words[self.codes[name][rows]]

    def says(self, name: str, rows: np.ndarray, word: str) -> np.ndarray:
        """Whether a text column has a word at some rows; bool, shape (len(rows),)."""
        is_word = np.array([one == word for one in self.words[name]] or [False])
        return is_word[self.codes[name][rows]]

    def coded(self, name: str, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """A text column at some rows as codes, shape (len(rows),), into the words that occur there."""
        occurring, codes = np.unique(self.codes[name][rows], return_inverse=True)
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
